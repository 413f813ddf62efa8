#include <fastweights/networks/operations/frame_convolution.hpp>

#include "networks/operation_checks.hpp"

namespace {

using namespace fw::networks;
using namespace operation_checks;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("convolutions of frames: gradients and streaming", "[networks]") {
  const auto check = [](Index rows, const FrameConvolutionOptions& o) {
    INFO("rows " << rows << ", kernel " << o.kernel << ", channels " << o.channels << ", stride "
                 << o.stride << ", padding " << o.padding << ", history " << o.history);
    check_operation(rows, [&](const auto& x) { return frame_convolution(x, "conv", o); });
  };
  check(1, {.kernel = 1});
  check(1, {.kernel = 3, .stride = 3, .padding = 2, .history = 1});
  check(7, {.kernel = 3, .outputs = 5, .stride = 2, .bias = true});
  check(8, {.kernel = 4, .outputs = 3, .stride = 2, .history = 2});
  check(6, {.kernel = 9, .outputs = 2, .stride = 3, .history = 17, .bias = true});
  check(12, {.kernel = 3, .channels = 3, .outputs = 4, .stride = 2, .padding = 1, .bias = true});
  check(10, {.kernel = 4, .channels = 5, .stride = 1, .padding = 3, .history = 2});
  check(3, {.kernel = 1, .channels = 3, .outputs = 2, .padding = 4});
}

// Frame i of y is the definition's sum. Frames outside of the token and its history are zeros.
Matrix<double> sums(const Net& network, const FrameConvolutionOptions& o, const Matrix<double>& x) {
  const Index frames = x.rows() / o.channels, all = o.history + frames;
  const Index given = (all + 2 * o.padding - o.kernel) / o.stride + 1;
  const auto frame = [&](Index t, Index i, Index channel) {
    const Index at = t * frames + i - o.history;  // in the stream
    if (i < 0 || i >= all || at < 0) return 0.0;
    return x(at % frames * o.channels + channel, at / frames);
  };
  Matrix<double> y(given * o.outputs, x.cols());
  for (Index t = 0; t < x.cols(); ++t)
    for (Index i = 0; i < given; ++i)
      for (Index r = 0; r < o.outputs; ++r) {
        double sum = network.weights[1].value(r, 0);
        for (Index c = 0; c < o.channels; ++c)
          for (Index j = 0; j < o.kernel; ++j)
            sum += network.weights[0].value(r * o.channels + c, j) *
                   frame(t, i * o.stride + j - o.padding, c);
        y(i * o.outputs + r, t) = sum;
      }
  return y;
}

TEST_CASE("a convolution of frames is the sum of its definition", "[networks]") {
  fw::Random random(2);
  for (const FrameConvolutionOptions& o :
       {FrameConvolutionOptions{
            .kernel = 5, .outputs = 3, .stride = 2, .padding = 1, .history = 7, .bias = true},
        {.kernel = 3, .channels = 3, .outputs = 4, .stride = 2, .padding = 1, .bias = true},
        {.kernel = 2, .channels = 2, .outputs = 1, .padding = 3, .history = 1, .bias = true}}) {
    const Net network =
        network_of(12, [&](const auto& x) { return frame_convolution(x, "conv", o); });
    CHECK(network.weights[0].axes == std::vector<Index>{o.outputs, o.channels, o.kernel});
    const Matrix<double> x = random_matrix(12, 5, random);
    State state = network.initial_state();
    Net::Trace trace;
    check_equal(run(network, state, x, trace), sums(network, o, x), 1e-14);
  }
}

// With a history of K - s frames the cut of a stream into tokens does not matter.
TEST_CASE("a convolution of frames of a stream does not depend on its tokens", "[networks]") {
  const FrameConvolutionOptions o{
      .kernel = 5, .channels = 3, .outputs = 2, .stride = 2, .history = 3};
  const auto net = [&](Index frames) {
    return network_of(frames * 3, [&](const auto& x) { return frame_convolution(x, "conv", o); });
  };
  const Net coarse = net(8);
  Net fine = net(2);
  fine.weights[0].value = coarse.weights[0].value;
  fw::Random random(3);
  const Matrix<double> x = random_matrix(24, 3, random);
  State a = coarse.initial_state(), b = fine.initial_state();
  Net::Trace trace_a, trace_b;
  const Matrix<double> y = run(coarse, a, x, trace_a);
  const Matrix<double> z = run(fine, b, x.reshaped(6, 12), trace_b);
  check_equal(z.reshaped(8, 3), y, 1e-14);
}

TEST_CASE("convolutions of frames whose options do not fit are refused", "[networks]") {
  const auto refused = [](const FrameConvolutionOptions& o, const std::string& what) {
    CHECK_THROWS_WITH(network_of(6, [&](const auto& x) { return frame_convolution(x, "conv", o); }),
                      ContainsSubstring("conv: " + what));
  };
  refused({.kernel = 0}, "kernel is 0, expected 1 to 1e9");
  refused({.kernel = 2, .channels = 0}, "channels is 0");
  refused({.kernel = 2, .outputs = -1}, "outputs is -1");
  refused({.kernel = 2, .stride = 0}, "stride is 0");
  refused({.kernel = 2, .padding = -1}, "padding is -1, expected 0 to 1e9");
  refused({.kernel = 2, .history = -1}, "history is -1");
  refused({.kernel = 2, .history = Index(1) << 62}, "history is ");
  refused({.kernel = 2, .channels = 4}, "6 rows are no frames of 4 channels");
  refused({.kernel = 10, .padding = 1, .history = 1}, "a kernel of 10 frames is longer");
}

}  // namespace
