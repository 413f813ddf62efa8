#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>

/// \file
/// The meaning of a memory's file: the memory's name in the table, its options, and the conventions
/// of the file's arrays. Data only: a source of cases compiles in a second.

namespace reference {

/// The conventions of a file. Sequences are [B, T, H, D] (or [B, T, H] for numbers), states
/// [B, H, …]. An array with fewer heads than the output is shared by groups of heads.
struct Layout {
  struct Kept {
    std::string initial, final;
    bool key_major = true;  // matrices are [B, H, K, V]; else [B, H, d_v, d_k]
    bool softmax = false;   // the final array has the softmax of every row along its last axis
  };
  struct Slow {
    std::string name;
    bool key_major = true;
  };
  /// Arrays of the members that a memory writes and reads, if they have other names than usual:
  /// k, v, beta, g and q for key, value, beta, decay and query.
  std::map<std::string_view, std::string> inputs = {};
  /// The axes of sequences in another order, or without heads: "BDT". By name of the array. Axes
  /// T that follow each other are one: the mini-batches of "BHTTD".
  std::map<std::string, std::string> axes = {};
  /// Members of which the file has the logarithm.
  std::set<std::string_view> logarithms = {"decay"};
  /// Members that are the same number for all tokens, and not in the file.
  std::map<std::string_view, double> constants = {};
  /// Members of which the file has x, with the member sigmoid(x).
  std::set<std::string_view> sigmoids = {};
  /// Arrays of the state's members, if the file has them.
  std::map<std::string, Kept> state = {{"W", {"initial_state", "final_state"}}};
  /// Arrays [H, …] of the state's slow weights.
  std::map<std::string, Slow> slow = {};
  bool scales_query = true;  // the source multiplies q by 1/√K
  /// Members that the source multiplies with q as it is: they are multiplied by √K.
  std::set<std::string_view> of_unscaled_query = {};
  double normalise = -1;  // if ≥ 0, it first divides q and k by √(‖x‖² + this)
};

/// The value of an option: a number, or where the file has it.
struct Number {
  double value = 0;
  std::string array = {};                    // the size of one of its axes
  std::size_t axis = 0;                      //
  std::string setting = {};                  // the text of this entry of the metadata
  double (*of_head)(double head) = nullptr;  // another number for every head
};
inline Number axis(std::string array, std::size_t i) {
  return {.array = std::move(array), .axis = i};
}
inline Number setting(std::string key) { return {.setting = std::move(key)}; }

/// A memory of fw::make_memory and the file's conventions.
struct MemoryCase {
  std::string memory;
  Layout layout = {};
  std::map<std::string, Number> options = {};
};

/// By file stem.
using MemoryCases = std::map<std::string, MemoryCase>;
MemoryCases memory_cases();
MemoryCases delta_family_cases();
MemoryCases state_space_cases();
MemoryCases attention_cases();
MemoryCases test_time_cases();

}  // namespace reference
