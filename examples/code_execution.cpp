// Programs of a few variables, executed statement by statement: the code execution task of Irie et
// al. 2021 (arXiv 2106.06295, section 4.1). The same model around the sum rule, the delta rule and
// recurrent fast weight programmers; prints which share of the printed values each gets right, and
// of whole programs, beside what the paper has for the latter at its larger sizes (a width of 256,
// 4 layers).
//
//   build/release/examples/code_execution [--quick] [--variables 5] [--seed 2]

#include "support/code_execution_task.hpp"
#include "support/task_run.hpp"

namespace {

// The best that knows only how often each value is printed.
double most_frequent(const CodeExecutionOptions& o, long programs) {
  std::vector<long> counts(code_answers, 0);
  long all = 0;
  for (long i = 0; i < programs; ++i)
    for (const int target : draw_program(o, test_seed, static_cast<std::uint64_t>(i)).targets)
      if (target != no_answer) ++counts.at(static_cast<std::size_t>(target)), ++all;
  return static_cast<double>(*std::ranges::max_element(counts)) / static_cast<double>(all);
}

// Table 1 of the paper, in % of programs of 100 statements, by model; what it prints of these.
std::map<std::string, double> published(const CodeExecutionOptions& o) {
  if (o.statements != 100 || !o.keeps_assigned) return {};
  if (o.variables == 3) return {{"sum", 0.0}};
  if (o.variables == 5) return {{"sum", 0.0}, {"delta", 61.4}, {"delta-rnn", 85.1}};
  return {};
}

void print_table(const TaskSettings& s, const CodeExecutionOptions& o,
                 const std::vector<TaskResult>& results, double guess) {
  std::printf(
      "\nAccuracy in %%, %ld test programs of %ld statements and %d variables, %ld steps of %ld, "
      "seed %llu\n\n| model | parameters | printed values | whole programs | the same, published | "
      "seconds a step |\n|---|---|---|---|---|---|\n",
      s.test, o.statements, o.variables, s.steps, s.batch, static_cast<unsigned long long>(s.seed));
  for (const TaskResult& r : results) {
    std::printf("| %s | %ld | %.1f | %.1f | ", task_title(r.kind).c_str(), long{r.parameters},
                100 * r.answers, 100 * r.complete);
    const auto theirs = published(o);
    if (const auto one = theirs.find(r.kind); one != theirs.end()) std::printf("%.1f", one->second);
    std::printf(" | %.3f |\n", r.seconds);
  }
  std::printf("| always the most frequent value | | %.1f | | | |\n\n", 100 * guess);
}

}  // namespace

int main(int argc, char** argv) try {
  TaskSettings s;
  CodeExecutionOptions o;
  s.output = "build/code_execution";
  s.steps = 6000;
  s.rate = 2e-3;
  s.sizes.symbols = code_answers;  // as many as there are words, and one more
  bool repaired = false;
  CLI::App app("Executing programs with recurrent fast weights");
  add_task_options(app, s);
  app.add_option("--variables", o.variables, "of a program")
      ->check(CLI::Range(1, 5))
      ->capture_default_str();
  app.add_option("--statements", o.statements, "of a program")
      ->check(CLI::Range(2, 10000))
      ->capture_default_str();
  app.add_flag("--repaired", repaired,
               "a true `if` assigns to any variable, where the paper's programs leave a variable "
               "that has a value as it is");
  CLI11_PARSE(app, argc, argv);
  o.keeps_assigned = !repaired;
  if (s.quick) o.statements = 10, s.steps = 1000, s.rate = 5e-3, s.test = 500;
  if (s.smoke) s.steps = 3, s.batch = 4, s.test = s.validation = 8, o.statements = 10;
  const auto results = run_task(
      s, [&](std::uint64_t seed, std::uint64_t index) { return draw_program(o, seed, index); });
  const double guess = most_frequent(o, s.test);
  print_table(s, o, results, guess);
  std::map<std::string, double> lines;
  for (const auto& [kind, percent] : published(o)) lines["paper: " + task_title(kind)] = percent;
  if (lines.empty())
    plot_task(s, "printed values right, %", false, {{"most frequent value", 100 * guess}});
  else
    plot_task(s, "programs all of whose values are right, %", true, lines);
  if (s.quick && !s.smoke) expect_learned(results, 0.35);  // three times what guessing gives
} catch (const std::exception& error) {
  std::cerr << "code_execution: " << error.what() << "\n";
  return 1;
}
