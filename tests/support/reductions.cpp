#include "support/reductions.hpp"

#include <optional>
#include <stdexcept>
#include <string>

namespace laws {

namespace {

using Eigen::MatrixXd;
using fw::detail::Leaf;
using fw::detail::LeafPath;

Leaf leaf_at(const fw::detail::Object& record, std::string_view path) {
  std::optional<Leaf> found;
  std::string all;
  fw::detail::visit_leaves(&record, 1, [&](const Leaf* each, const LeafPath& at) {
    const std::string text = at.text();
    if (text == path) found = *each;
    all += " " + text;
  });
  if (!found) throw std::invalid_argument("no leaf " + std::string(path) + ", but:" + all);
  return *found;
}

}  // namespace

MatrixXd outputs_of(const fw::AnyMemory<double>& memory, std::vector<MatrixXd> inputs,
                    std::vector<MatrixXd> queries) {
  const auto& [members, matrices] = inputs.empty() ? std::pair(memory.read_with(), &queries)
                                                   : std::pair(memory.written(), &inputs);
  const Index steps = matrices->front().cols() / members.front().width;
  AnySequences<double> all{{memory.written(), 0, 0.0},
                           {memory.read_with(), 0, 0.0},
                           {memory.given(), steps, std::nan("")}};
  all.inputs.matrices = std::move(inputs);
  all.queries.matrices = std::move(queries);
  auto state = memory.initial_state();
  fw::testing::scan(memory, state, all);
  return all.outputs.matrices.front();
}

AnySequences<double> random_outputs(const fw::AnyMemory<double>& memory, Index steps,
                                    std::uint64_t seed, bool positive) {
  fw::Random random(seed);
  auto all = fw::testing::random_sequences(memory, steps, random, positive);
  auto state = memory.initial_state();
  fw::testing::scan(memory, state, all);
  return all;
}

double output_difference(const AnySequences<double>& all, const fw::AnyMemory<double>& memory,
                         std::vector<MatrixXd> inputs) {
  const MatrixXd own = outputs_of(memory, std::move(inputs), all.queries.matrices);
  return largest_entry(own - all.outputs.matrices.front());
}

template <class S>
Eigen::Map<Eigen::MatrixX<S>> leaf(const fw::detail::Object& record, std::string_view path) {
  const Leaf found = leaf_at(record, path);
  if (found.scalar != fw::detail::scalar_kind<S>() || (found.is_row_major && !found.is_vector()))
    throw std::invalid_argument(std::string(path) + " has another scalar or order");
  return {static_cast<S*>(found.data), found.rows, found.cols};
}
template Eigen::Map<Eigen::MatrixX<float>> leaf(const fw::detail::Object&, std::string_view);
template Eigen::Map<Eigen::MatrixX<double>> leaf(const fw::detail::Object&, std::string_view);

std::int64_t counter(const fw::detail::Object& record, std::string_view path) {
  std::int64_t number = 0;
  const Leaf found = leaf_at(record, path);
  if (found.scalar != fw::detail::ScalarKind::integer || !found.load_integer(0, number))
    throw std::invalid_argument(std::string(path) + " is no counter");
  return number;
}

}  // namespace laws
