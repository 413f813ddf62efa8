// Any bytes as the saved state of a memory: it is refused and the state is unchanged, or it is
// loaded, and the memory continues with it. The first byte selects the memory.

#include <fastweights/algorithms/step.hpp>
#include <fastweights/core/leaves.hpp>
#include <fastweights/io/weights.hpp>
#include <fastweights/memories/adaptors/deferred.hpp>
#include <fastweights/memories/attention/compressive_memory.hpp>
#include <fastweights/memories/attention/key_value_cache.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <fastweights/memories/rules/linear_attention.hpp>

#include "mutator.hpp"
#include "oracle.hpp"

namespace {

using fw::io::SafeTensors;
using fw::io::SafeTensorsWriter;

template <class State> SafeTensors saved(const State& state) {
  SafeTensorsWriter writer;
  fw::io::add_state(writer, state);
  return SafeTensors::parse(writer.bytes(), "the file");
}

bool same(const SafeTensors& a, const SafeTensors& b) {
  for (const std::string& name : a.names())
    if (!fuzz::same_bytes(a.data(name), b.data(name))) return false;
  return true;
}

// True if a loaded state must be equal, byte by byte, to the file.
bool has_same_types(const SafeTensors& a, const SafeTensors& b) {
  for (const std::string& name : a.names())
    if (a.dtype(name) != b.dtype(name)) return false;
  return true;
}

// Loads the file and, if the library checks a state's counters, calls `use` with the state.
template <class M, class Use> void load(const M& memory, const SafeTensors& file, const Use& use) {
  auto state = fw::initial_state(memory);
  const SafeTensors before = saved(state);
  constexpr bool checks_counters = requires { fw::io::load_state(memory, state, file); };
  const bool loaded = fuzz::succeeds([&] {
    if constexpr (checks_counters)
      fw::io::load_state(memory, state, file);
    else
      fw::io::load_state(state, file);
  });
  const SafeTensors after = saved(state);
  if (!loaded) return fuzz::require(same(before, after), "a failed load changed the state");
  fuzz::require(!has_same_types(after, file) || same(after, file), "a loaded value differs");
  if constexpr (checks_counters)
    for (int i = 0; i < 3; ++i) use(state);
}

using Vector = Eigen::VectorXf;
const Vector key = Vector::LinSpaced(3, -0.5f, 0.5f), value = Vector::LinSpaced(2, 1.0f, 2.0f);

template <class Stored> void load_deferred(const SafeTensors& file) {
  using Rule = fw::DeltaRule<float>;
  const fw::Deferred<Rule, 3, Stored> m(Rule({.key_size = 3, .value_size = 2}));
  Vector y(2);
  const float beta = 0.5f;
  load(m, file, [&](auto& state) { fw::step(m, state, {key, value, beta}, {key}, {y}); });
}

void load_one(std::uint8_t memory, const SafeTensors& file) {
  Vector y(2);
  if (memory % 5 == 0) {
    const fw::KeyValueCache<float> m({.key_size = 3, .value_size = 2}, {4});
    load(m, file, [&](auto& state) { fw::step(m, state, {key, value}, {key}, {y}); });
  } else if (memory % 5 == 1) {
    const fw::CompressiveMemory<float> m({3, 1, 2, 4, 2});
    const Eigen::MatrixXf chunk = Eigen::MatrixXf::Ones(3, 5);
    Eigen::MatrixXf out(3, 1);
    load(m, file, [&](auto& state) {
      fw::write(m, state, {chunk});
      fw::read(m, state, {key}, {out});
    });
  } else if (memory % 5 == 2) {
    load_deferred<Eigen::half>(file);
  } else if (memory % 5 == 3) {
    using M = fw::LinearAttention<float, 3, 2, fw::AttentionNormaliser<float>>;
    const M m;
    load(m, file, [&](auto& state) { fw::step(m, state, {key, value}, {key}, {y}); });
  } else {
    load_deferred<std::int8_t>(file);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  const std::vector<std::byte> bytes(begin + 1, begin + size);  // of exactly this size
  fuzz::succeeds([&] { load_one(data[0], SafeTensors::view(bytes, "the file")); });
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max, unsigned seed) {
  return fuzz::mutate(data, size, max, 1, seed);
}
