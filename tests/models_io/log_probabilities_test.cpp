// Log probabilities of a text against log-softmax of the logits of the whole sequence.

#include <fastweights/models/log_probabilities.hpp>
#include <fastweights/networks/builder.hpp>
#include <fastweights/networks/operations.hpp>

#include "models_io/byte_model.hpp"
#include "models_io/folder_files.hpp"

namespace {

using namespace byte_model;
using folder_files::check_error;
using fw::models::log_probabilities;

std::vector<int> text(std::size_t count) {
  std::vector<int> ids;
  for (std::size_t i = 0; i < count; ++i) ids.push_back(int(i * i % 258));
  return ids;
}

// In double, of all positions at once.
Eigen::VectorXd expected(const Network& model, const std::vector<int>& ids) {
  fw::networks::State state = model.initial_state();
  Network::Trace trace;
  Eigen::MatrixXf logits(vocabulary, Index(ids.size()));
  model.forward(state, ids, logits, trace);
  Eigen::VectorXd all(Index(ids.size()) - 1);
  for (Index t = 0; t < all.size(); ++t) {
    const Eigen::VectorXd column = logits.col(t).cast<double>();
    all[t] = column[ids[std::size_t(t) + 1]] - std::log(column.array().exp().sum());
  }
  return all;
}

TEST_CASE("log probabilities are log-softmax of the logits", "[models_io]") {
  const Network model = network();
  for (const std::size_t count : {2u, 3u, 256u, 257u, 258u, 700u}) {
    const std::vector<double> given = log_probabilities(model, text(count));
    REQUIRE(given.size() == count - 1);
    const auto all = Eigen::Map<const Eigen::VectorXd>(given.data(), Index(given.size()));
    CHECK((all - expected(model, text(count))).cwiseAbs().maxCoeff() < 1e-6);
  }
}

// A table of logits: the probabilities are known.
Network table(const Eigen::MatrixXf& logits) {
  fw::networks::Builder<float> b;
  Network network = b.build(fw::networks::embedding(b, "table", logits.cols(), logits.rows()));
  network.weights.at(0).value = logits.transpose();
  return network;
}

TEST_CASE("log probabilities of large and of infinite logits", "[models_io]") {
  Eigen::MatrixXf logits = Eigen::MatrixXf::Zero(3, 3);
  CHECK(std::abs(log_probabilities(table(logits), std::vector<int>{0, 1})[0] + std::log(3.0)) <
        1e-15);
  logits << 1e30f, 0, 0, 0, 0, 0, 0, 0, 0;
  const std::vector<double> all = log_probabilities(table(logits), std::vector<int>{0, 0, 1});
  CHECK(all[0] == 0);
  CHECK(all[1] == -double(1e30f));
}

TEST_CASE("log probabilities refuse what is no text of the model", "[models_io]") {
  const Network model = network();
  check_error<std::invalid_argument>([&] { log_probabilities(model, text(1)); },
                                     {"log_probabilities: the text has 1 tokens"});
  check_error<std::invalid_argument>([&] { log_probabilities(model, text(0)); }, {"has 0 tokens"});
  for (const int id : {-1, 258}) {
    const std::vector<int> ids{1, 2, id};
    check_error<std::invalid_argument>([&] { log_probabilities(model, ids); },
                                       {"log_probabilities", std::to_string(id)});
  }
  check_error<std::invalid_argument>(
      [&] {
        log_probabilities(table(Eigen::MatrixXf::Zero(2, 3)), std::vector<int>{0, 1});
      },
      {"log_probabilities: the network has 2 outputs"});
}

}  // namespace
