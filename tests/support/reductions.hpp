#pragma once

#include <fastweights/any_memory/table.hpp>
#include <fastweights/testing/any_sequences.hpp>
#include <string_view>
#include <vector>

#include "support/largest_entry.hpp"

/// \file
/// Outputs and states of memories, to compare one memory with another or with its equations:
///
///     const auto all = laws::random_outputs(fw::make_memory<double>("DeltaRule", {4, 5}), 20, 3);
///     const auto& in = all.inputs;
///     laws::output_difference(all, comba, {in["key"], in["value"], in["key"], in["beta"], ones});
///
/// Numbers of tokens are 1×T matrices.

namespace laws {

using fw::Index;
using fw::testing::AnySequences;

/// The outputs of a memory from its initial state, for one matrix a member, in order.
Eigen::MatrixXd outputs_of(const fw::AnyMemory<double>& memory, std::vector<Eigen::MatrixXd> inputs,
                           std::vector<Eigen::MatrixXd> queries);

/// A random sequence with the outputs of a memory from its initial state.
AnySequences<double> random_outputs(const fw::AnyMemory<double>& memory, Index steps,
                                    std::uint64_t seed, bool positive = false);

/// The largest difference between the outputs of `all`, from another memory, and those of `memory`
/// for `inputs` and the same queries.
double output_difference(const AnySequences<double>& all, const fw::AnyMemory<double>& memory,
                         std::vector<Eigen::MatrixXd> inputs);

/// The array or number of a record at a path, as "normaliser.sum", to read and to write. Throws
/// std::invalid_argument if there is none of this scalar.
template <class S>
Eigen::Map<Eigen::MatrixX<S>> leaf(const fw::detail::Object& record, std::string_view path);

/// A leaf of a state.
template <class S> Eigen::Map<Eigen::MatrixX<S>> leaf(fw::AnyState<S>& s, std::string_view path) {
  return leaf<S>(s.object(), path);
}
template <class S>
Eigen::Map<const Eigen::MatrixX<S>> leaf(const fw::AnyState<S>& s, std::string_view path) {
  const auto found = leaf<S>(s.object(), path);
  return {found.data(), found.rows(), found.cols()};
}

/// A counter of a record at a path.
std::int64_t counter(const fw::detail::Object& record, std::string_view path);

}  // namespace laws
