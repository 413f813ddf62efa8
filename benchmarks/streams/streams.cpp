// Streaming steps of a language model: several streams in one step against a step of each, and one
// stream against the time of reading the weights. One thread.
//
//     build/release/benchmarks/streams

#include <cstdio>
#include <vector>

#include "char_model.hpp"
#include "compare.hpp"
#include "machine.hpp"

namespace {

using char_model::Model;
using fw::Index;

struct Stream {
  Model::State state;
  Model::Trace trace;
  Eigen::MatrixXf logits;

  Stream(const Model& model, Index count)
      : state(model.initial_state(count)), logits(char_model::symbols, count) {}
  void step(const Model& model, fw::Symbols ids) { model.forward(state, ids, logits, trace); }
};

// The time of separate steps over that of one step of all streams.
void print_streams(Index layers, Index heads, Index count) {
  const Model model = char_model::make(layers, heads);
  const auto ids = char_model::random_ids(std::size_t(count));
  Stream together(model, count);
  std::vector<Stream> separate(std::size_t(count), Stream(model, 1));
  const auto each = [&] {
    for (std::size_t b = 0; b < separate.size(); ++b)
      separate[b].step(model, fw::Symbols(ids).subspan(b, 1));
  };
  const auto all = [&] { together.step(model, ids); };
  const double ratio = machine::time_ratio(machine::processor_clock, all, each);
  const double seconds = machine::best_seconds([&] {
                           for (int i = 0; i < 50; ++i) all();
                         }) /
                         50;
  std::printf("| %td x %td | %td | %.0f | %.2f |\n", layers, heads * char_model::head_size, count,
              double(count) / seconds, ratio);
  std::fflush(stdout);
}

// The time of a step of one stream over that of a loop that adds all numbers of its weights.
void print_one(Index layers, Index heads) {
  const Model model = char_model::make(layers, heads);
  const auto ids = char_model::random_ids(1);
  Stream stream(model, 1);
  const Index count = fw::parameter_count(model);
  const Eigen::ArrayXf weights = Eigen::ArrayXf::Ones(count);
  volatile float sink = 0;
  const double ratio = machine::time_ratio(
      machine::processor_clock, [&] { sink = weights.sum(); }, [&] { stream.step(model, ids); });
  std::printf("| %td x %td | %.0f | %.2f |\n", layers, heads * char_model::head_size,
              double(count) * 4 / 1024, ratio);
  std::fflush(stdout);
}

}  // namespace

int main() {
  Eigen::setNbThreads(1);
  std::printf("| model | streams | tokens/s | over separate steps |\n|---|---:|---:|---:|\n");
  for (const Index count : {4, 16, 64}) print_streams(4, 8, count);
  print_streams(2, 4, 16);
  std::printf(
      "\n| model | KiB of weights | step of one stream over reading them |\n|---|---:|---:|\n");
  print_one(2, 2);
  print_one(2, 4);
  print_one(4, 8);
}
