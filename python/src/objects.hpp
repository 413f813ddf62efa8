#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "heads.hpp"

/// \file
/// The objects of Python: Memory, State and Checkpoints. The class of each name in the table
/// derives from Memory.

namespace fw::python {

/// Marks an object that a call changes while other threads of Python run.
class Busy {
 public:
  /// Throws std::runtime_error if another call uses the object.
  class Guard {
   public:
    Guard(Busy& busy, const char* name);
    ~Guard() { busy_.used_.clear(); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    Busy& busy_;
  };

 private:
  std::atomic_flag used_;
};

struct Memory {
  std::shared_ptr<const Heads> heads;
  std::vector<std::pair<std::string, nb::object>> arguments;  ///< of the constructor, in order

  std::string text() const;  ///< "DeltaRule(key_size=64, …)"
};

/// True if both are of the same class with the same arguments: such memories are equal.
bool same_arguments(const Memory& a, const Memory& b);

struct State {
  nb::object memory;  ///< the Memory that made it
  Streams streams;
  Busy busy;

  const Heads& heads() const { return *nb::cast<const Memory&>(memory).heads; }
  Index batch() const { return streams.count() / heads().count; }
};

struct Checkpoints {
  nb::object memory;  ///< the Memory of the scan that filled them; invalid before
  Traces traces;
  Busy busy;
};

/// A new state. Throws nb::value_error unless batch × heads is at most most_streams.
nb::object new_state(nb::handle memory, Index batch);
/// A new state with all entries 0: a gradient.
nb::object zero_state(nb::handle memory, Index batch);

/// The methods of all memories. The arguments `inputs` are in the order of MemoryClass::inputs.
nb::object scan(nb::handle memory, State& state, std::span<const nb::object> inputs,
                Checkpoints* checkpoints);
nb::object step(nb::handle memory, State& state, std::span<const nb::object> inputs);
nb::object backward(nb::handle memory, nb::handle start, std::span<const nb::object> inputs,
                    nb::handle output_gradient, State* state_gradient);

/// The shapes of the inputs of a scan, by name.
nb::dict input_shapes(const Memory& memory, Index batch, Index time);

/// "float32" or "float64" of a name or a dtype of NumPy or PyTorch.
std::string dtype_name(nb::handle dtype);
/// The most states of one head and one sequence that a State may have.
inline constexpr Index most_streams = (Index(1) << 31) - 1;
/// Throws nb::value_error unless it is at least 1 and at most most_streams.
void check_heads(const std::string& name, Index heads);

void bind_memory(nb::module_& m);
void bind_state(nb::module_& m);
/// A class for each memory of the table.
void bind_memories(nb::module_& m);
void bind_threads(nb::module_& m);

/// Sets the number of OpenMP threads for calls of this thread, until it is destroyed.
class UsedThreads {
 public:
  UsedThreads();
  ~UsedThreads();
  UsedThreads(const UsedThreads&) = delete;
  UsedThreads& operator=(const UsedThreads&) = delete;

 private:
  int before_;
};

}  // namespace fw::python
