// Programs of a few variables, executed statement by statement: the code execution task of Irie et
// al. 2021 (arXiv 2106.06295, section 4.1). The same model is trained around the sum rule, the
// delta rule and recurrent fast weight programmers. The program prints the share of right answers
// and of programs all of whose answers are right, the latter beside the paper's.
//
//   build/release/examples/code_execution [--quick] [--variables 5] [--seed 2]
//
// The paper's models are larger (a width of 256, 4 layers of 16 heads) and see 10,000 programs 200
// times; ours see 48,000 programs once and have a convolution over four tokens before each memory,
// without which they learn far more slowly. The paper's sum rule has no normaliser.

#include "report/experiments/task_report.hpp"
#include "tasks/code_execution_task.hpp"

namespace {

// The accuracy of always giving the most frequent answer.
double most_frequent(const CodeExecutionOptions& o, long programs) {
  std::vector<long> counts(code_answers, 0);
  long all = 0;
  for (long i = 0; i < programs; ++i)
    for (const int target : draw_program(o, test_seed, static_cast<std::uint64_t>(i)).targets)
      if (target != no_answer) ++counts.at(static_cast<std::size_t>(target)), ++all;
  return static_cast<double>(*std::ranges::max_element(counts)) / static_cast<double>(all);
}

// Table 1 of the paper, whole programs in %, of 3 and of 5 variables; -1 where it has none.
struct Published {
  std::string kind;
  double three, five;
};
const std::vector<Published> published{
    {"LSTM", 99.0, 93.2}, {"sum", 0, 0}, {"delta", -1, 61.4}, {"delta-rnn", -1, 85.1}};

// True if the paper has results for such programs.
bool of_the_paper(const CodeExecutionOptions& o) {
  return o.statements == 100 && o.keeps_assigned && (o.variables == 3 || o.variables == 5);
}

// Two cells of a table.
std::string published_cells(const CodeExecutionOptions& o, const std::string& kind) {
  if (!of_the_paper(o)) return " | ";
  const auto found = std::ranges::find(published, kind, &Published::kind);
  const auto cell = [](double percent) {
    char text[16] = "";
    if (percent >= 0) std::snprintf(text, sizeof text, "%.1f", percent);
    return std::string(text);
  };
  return found == published.end() ? " | " : cell(found->three) + " | " + cell(found->five);
}

void print_table(const TaskSettings& s, const CodeExecutionOptions& o,
                 const std::vector<TaskResult>& results, double guess) {
  std::printf(
      "\nRight in %%, %ld test programs of %ld statements and %d variables, %ld steps of %ld, seed "
      "%llu\n\n| model | parameters | prints | whole programs | the paper's, 100 statements, 3 "
      "variables | 5 variables | seconds a step |\n|---|---|---|---|---|---|---|\n",
      s.test, o.statements, o.variables, s.steps, s.batch, static_cast<unsigned long long>(s.seed));
  for (const TaskResult& r : results)
    std::printf("| %s | %ld | %.1f | %.1f | %s | %.3f |\n",
                title_of(task_model_kinds, r.kind).c_str(), long{r.parameters}, 100 * r.answers,
                100 * r.complete, published_cells(o, r.kind).c_str(), r.seconds);
  std::printf("| LSTM | | | | %s | |\n| always the most frequent answer | | %.1f | | | | |\n\n",
              published_cells(o, "LSTM").c_str(), 100 * guess);
}

// The paper's results as lines in the picture, for programs like the paper's.
std::map<std::string, double> published_lines(const CodeExecutionOptions& o) {
  std::map<std::string, double> lines;
  if (!of_the_paper(o)) return lines;
  for (const Published& p : published) {
    const double percent = o.variables == 3 ? p.three : p.five;
    if (percent >= 0) lines["paper: " + title_of(task_model_kinds, p.kind)] = percent;
  }
  return lines;
}

}  // namespace

int main(int argc, char** argv) try {
  TaskSettings s{.output = "build/code_execution",
                 .steps = 3000,
                 .batch = 16,
                 .rate = 3e-3,
                 .sizes = {.symbols = code_answers,  // there are more answers than words
                           .convolution = 4}};
  CodeExecutionOptions o;
  bool repaired = false;
  CommandLine app("Executing programs with recurrent fast weights");
  add_task_options(app, s);
  app.add_option("--variables", o.variables, "of a program").between(1, 5).show_default();
  app.add_option("--statements", o.statements, "of a program").between(2, 10000).show_default();
  app.add_flag("--repaired", repaired,
               "a true `if` assigns to any variable, where the paper's programs leave a variable "
               "that has a value as it is");
  app.option("--quick").excludes({"--statements"});
  app.parse(argc, argv);
  use_own_folder(app, s.output, s.quick || s.smoke);
  o.keeps_assigned = !repaired;
  if (s.quick) o.statements = 10, s.steps = 1000, s.rate = 5e-3, s.test = 500;
  if (s.smoke) s.steps = 3, s.batch = 4, s.test = s.validation = 8, o.statements = 10;
  const auto results = run_task(
      s, [&](std::uint64_t seed, std::uint64_t index) { return draw_program(o, seed, index); });
  const double guess = most_frequent(o, s.test);
  print_table(s, o, results, guess);
  plot_task(s, {{"prints right, %", false, {{"most frequent answer", 100 * guess}}},
                {"programs all of whose prints are right, %", true, published_lines(o)}});
  if (s.quick && !s.smoke)
    return learned(results, 0.6) ? 0 : 1;  // guessing gives 0.11, a plain RNN less than 0.5
} catch (const std::exception& error) {
  std::cerr << "code_execution: " << error.what() << "\n";
  return 1;
}
