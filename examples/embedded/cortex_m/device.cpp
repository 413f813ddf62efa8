// The device: loads the model from read-only memory, streams the tokens through it, and compares
// the outputs with those of the host.
#include <cstdio>
#include <cstdlib>
#include <fastweights/io/weights.hpp>

#include "device_data.hpp"  // of script/embed_weights
#include "measure.hpp"
#include "model.hpp"

// The library's errors (-DFASTWEIGHTS_ERROR_HANDLER=on_error). A product would restart here.
void on_error(const char* message) {
  std::printf("error: %s\n", message);
  std::exit(1);
}

namespace {

struct Run {
  float largest_difference = 0;
  unsigned long allocations = 0, instructions = 0;  // of all tokens but the first, which is slower
};

Run run(const Model& model, const Eigen::MatrixXf& tokens, const Eigen::MatrixXf& expected) {
  Run result;
  auto stream = model.stream();
  Eigen::MatrixXf outputs(expected.rows(), expected.cols());
  for (fw::Index t = 0; t < tokens.cols(); ++t) {
    const unsigned long allocations = measure::allocations(), start = measure::ticks();
    model.step(stream, {tokens.col(t).data(), Model::channels},
               {outputs.col(t).data(), Model::channels});
    if (t > 0) {
      result.instructions += measure::instructions_since(start);
      result.allocations += measure::allocations() - allocations;
    }
  }
  result.largest_difference = (outputs - expected).cwiseAbs().maxCoeff<Eigen::PropagateNaN>();
  return result;
}

}  // namespace

int main() {
  const auto file = fw::io::SafeTensors::view(device_data());
  static Model model;  // its weights are too large for the stack
  fw::io::load_parameters(model, file, "model");
  const auto tokens = file.matrix<float>("tokens"), expected = file.matrix<float>("outputs");
  const Run result = run(model, tokens, expected);

  const auto count = static_cast<unsigned long>(tokens.cols());
  const auto bytes = measure::memory();
  std::printf("%lu tokens, largest difference to the host %.1e, of outputs up to %.1f\n", count,
              double{result.largest_difference}, double{expected.cwiseAbs().maxCoeff()});
  std::printf("allocations while streaming: %lu (%lu before)\n", result.allocations,
              measure::allocations() - result.allocations);
  std::printf("instructions per token: %lu\n", result.instructions / (count - 1));
  std::printf("flash: %lu bytes of code and constants, %lu of them the file\n", bytes.flash,
              static_cast<unsigned long>(device_data().size()));
  std::printf("RAM: %lu bytes static, %lu heap, %lu of %lu stack\n", bytes.statics, bytes.heap,
              bytes.stack, bytes.stack_size);
  return result.largest_difference < 1e-5f && result.allocations == 0 ? 0 : 1;
}
