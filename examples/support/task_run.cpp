#include "task_run.hpp"

#include <chrono>
#include <cstdio>

#include "files.hpp"
#include "progress.hpp"
#include "task_trainer.hpp"

// The models of two examples, compiled once.

namespace {

template <class Model>
TaskResult train_task(const TaskSettings& s, const std::string& kind, Model model,
                      const TaskDraw& draw, std::ofstream& curves) {
  using Clock = std::chrono::steady_clock;
  fw::Random random(s.seed);
  fw::initialise(model, random);
  TaskTrainer<Model> trainer(model, draw);
  fw::AdamW<Model> optimiser(model, {.beta2 = 0.98, .weight_decay = 0, .clip = s.clip});
  const fw::WarmupCosine rate{
      .peak = s.rate, .warmup = std::min(s.warmup, s.steps / 4), .total = s.steps};
  Progress progress(kind, s.steps);
  std::chrono::duration<double> spent{};
  for (long step = 0; step < s.steps; ++step) {
    const auto start = Clock::now();
    const auto score = trainer.gradient(model, s.seed, step * s.batch, s.batch);
    optimiser.step(model, trainer.gradient(), rate(step));
    spent += Clock::now() - start;
    if ((step + 1) % s.every == 0 || step + 1 == s.steps) {
      const auto held = trainer.evaluate(model, validation_seed, s.validation);
      curves << kind << "," << step + 1 << "," << held.answers << "," << held.complete << ","
             << held.loss << "\n"
             << std::flush;
    }
    char note[64];
    std::snprintf(note, sizeof note, "loss %.3f  right %.0f %%", score.loss, 100 * score.answers);
    progress.show(step + 1, note);
  }
  const auto score = trainer.evaluate(model, test_seed, s.test);
  return {kind,          fw::parameter_count(model),
          score.answers, score.complete,
          score.loss,    spent.count() / static_cast<double>(s.steps)};
}

}  // namespace

std::vector<TaskResult> run_task(const TaskSettings& s, const TaskDraw& draw) {
  Eigen::setNbThreads(1);  // the shards are what runs in parallel
  const std::filesystem::path folder(s.output);
  make_folder(folder);
  std::vector<TaskResult> results;
  std::ofstream curves = open_to_write(folder / "curves.csv"),
                csv = open_to_write(folder / "results.csv");
  curves << "model,step,answers,complete,loss\n";
  csv << "model,parameters,answers,complete,loss,steps,seconds_per_step,seed\n";
  for (const std::string& kind : s.models) {
    const TaskResult r = with_task_model(kind, s.sizes, [&](auto model) {
      return train_task(s, kind, std::move(model), draw, curves);
    });
    csv << r.kind << "," << r.parameters << "," << r.answers << "," << r.complete << "," << r.loss
        << "," << s.steps << "," << r.seconds << "," << s.seed << "\n"
        << std::flush;  // what ends the next training leaves this one
    results.push_back(r);
  }
  return results;
}
