#include "training/experiments/task_run.hpp"

#include <cstdio>
#include <fastweights/training/schedule.hpp>

#include "report/files.hpp"
#include "training/progress.hpp"
#include "training/sequence_trainer.hpp"

namespace {

TaskResult train_task(const TaskSettings& s, const std::string& kind, const TaskDraw& draw,
                      std::ofstream& curves) {
  const auto model = make_task_model(kind, s.sizes);
  fw::Random random(s.seed);
  model->initialise(random);
  SequenceTrainer trainer(*model, {.beta2 = 0.98, .weight_decay = 0, .clip = s.clip});
  const auto drawn = [&](std::uint64_t seed, long first) {
    return
        [&draw, seed, first](long i) { return draw(seed, static_cast<std::uint64_t>(first + i)); };
  };
  const fw::WarmupCosine rate{
      .peak = s.rate, .warmup = std::min(s.warmup, s.steps / 4), .total = s.steps};
  Progress progress(kind, s.steps);
  double seconds = 0;
  const auto after = [&](const SequenceTrainer::Step& step, const Score& score) {
    seconds += step.seconds;
    if (step.step % s.every == 0 || step.step == s.steps) {
      const Score held_out = trainer.evaluate(s.validation, drawn(validation_seed, 0));
      curves << kind << "," << step.step << "," << held_out.accuracy() << ","
             << held_out.complete_share() << "," << held_out.loss << "\n"
             << std::flush;
    }
    char note[64];
    std::snprintf(note, sizeof note, "loss %.3f  right %.0f %%", score.loss,
                  100 * score.accuracy());
    progress.show(static_cast<long>(step.step), note);
  };
  trainer.train(
      s.steps, s.batch, rate, [&](long step) { return drawn(s.seed, step * s.batch); }, after);
  const Score score = trainer.evaluate(s.test, drawn(test_seed, 0));
  return {.kind = kind,
          .parameters = parameter_count(*model),
          .answers = score.accuracy(),
          .complete = score.complete_share(),
          .loss = score.loss,
          .seconds = seconds / static_cast<double>(s.steps)};
}

}  // namespace

std::vector<TaskResult> run_task(const TaskSettings& s, const TaskDraw& draw) {
  Eigen::setNbThreads(1);  // the shards run in parallel
  const std::filesystem::path folder(s.output);
  make_folder(folder);
  std::vector<TaskResult> results;
  std::ofstream curves = open_to_write(folder / "curves.csv"),
                csv = open_to_write(folder / "results.csv");
  curves << "model,step,answers,complete,loss\n";
  csv << "model,parameters,answers,complete,loss,steps,seconds_per_step,seed\n";
  for (const std::string& kind : s.models) {
    const TaskResult r = train_task(s, kind, draw, curves);
    csv << r.kind << "," << r.parameters << "," << r.answers << "," << r.complete << "," << r.loss
        << "," << s.steps << "," << r.seconds << "," << s.seed << "\n"
        << std::flush;  // an interrupted program leaves the finished trainings
    results.push_back(r);
  }
  return results;
}
