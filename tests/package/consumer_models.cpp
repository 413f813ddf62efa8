// A user's program with the optional part for published models: builds a layer from its options.

#include <fastweights/models/fla/gated_delta_net.hpp>

int main() {
  const auto config = fw::models::Config::parse(
      R"({"hidden_size": 8, "num_heads": 2, "head_dim": 4, "expand_v": 1})");
  auto network = fw::models::fla::gated_delta_net<float>(config);
  fw::Random random(1);
  network.initialise(random);
  fw::networks::State state = network.initial_state();
  fw::networks::Network<float>::Trace trace;
  const Eigen::MatrixXf x = Eigen::MatrixXf::Random(8, 5);
  Eigen::MatrixXf y(8, 5);
  network.forward(state, x, y, trace);
  return y.allFinite() && y.norm() > 0 ? 0 : 1;
}
