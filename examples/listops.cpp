// The value of nested lists, read from left to right: the sequential ListOps task of Irie et al.
// 2021 (arXiv 2106.06295, section 4.1). The same model is trained around the sum rule, the delta
// rule and recurrent fast weight programmers. The program prints the share of right answers of
// each. The sum rule has a normaliser here; the paper's has none.
//
//   build/release/examples/listops [--quick] [--depth 15] [--seed 2]

#include "report/experiments/task_report.hpp"
#include "tasks/listops_task.hpp"

namespace {

// The accuracy of always giving the most frequent value.
double most_frequent(const ListOpsOptions& o, long lists) {
  std::array<long, list_answers> counts{};
  for (long i = 0; i < lists; ++i)
    ++counts.at(static_cast<std::size_t>(
        draw_list(o, test_seed, static_cast<std::uint64_t>(i)).targets.back()));
  return static_cast<double>(*std::ranges::max_element(counts)) / static_cast<double>(lists);
}

void print_table(const TaskSettings& s, const ListOpsOptions& o,
                 const std::vector<TaskResult>& results, double guess) {
  std::printf(
      "\nAccuracy in %%, %ld test lists of depth %ld, %ld steps of %ld, seed %llu\n\n| model | "
      "parameters | right | seconds a step |\n|---|---|---|---|\n",
      s.test, o.depth, s.steps, s.batch, static_cast<unsigned long long>(s.seed));
  for (const TaskResult& r : results)
    std::printf("| %s | %ld | %.1f | %.3f |\n", title_of(task_model_kinds, r.kind).c_str(),
                long{r.parameters}, 100 * r.answers, r.seconds);
  std::printf("| always the most frequent value | | %.1f | |\n\n", 100 * guess);
}

}  // namespace

int main(int argc, char** argv) try {
  TaskSettings s{.output = "build/listops",
                 .steps = 6000,
                 .rate = 2e-3,
                 .sizes = {.symbols = static_cast<fw::Index>(list_words.size())}};
  ListOpsOptions o;
  CommandLine app("Evaluating nested lists with recurrent fast weights");
  add_task_options(app, s);
  app.add_option("--depth", o.depth, "of the lists")
      .between(1, 30)  // deeper ones are too rare to be drawn
      .show_default();
  app.option("--quick").excludes({"--depth"});
  app.parse(argc, argv);
  use_own_folder(app, s.output, s.quick || s.smoke);
  if (s.quick) o.depth = 4, s.steps = 800, s.test = 500;
  if (s.smoke) s.steps = 3, s.batch = 4, s.test = s.validation = 8, o.depth = 3;
  const auto results = run_task(
      s, [&](std::uint64_t seed, std::uint64_t index) { return draw_list(o, seed, index); });
  const double guess = most_frequent(o, s.test);
  print_table(s, o, results, guess);
  plot_task(s, {{"lists right, %", false, {{"most frequent value", 100 * guess}}}});
  if (s.quick && !s.smoke) return learned(results, 0.5) ? 0 : 1;  // more than twice a guess
} catch (const std::exception& error) {
  std::cerr << "listops: " << error.what() << "\n";
  return 1;
}
