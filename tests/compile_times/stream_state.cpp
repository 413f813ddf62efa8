// limit: 4
// A stream that is saved, loaded and continued bit for bit.
#include <fastweights/algorithms/step.hpp>
#include <fastweights/io/weights.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <filesystem>

int main() {
  const fw::DeltaRule<float> memory({.key_size = 64});
  auto state = fw::initial_state(memory);
  const Eigen::VectorXf key = Eigen::VectorXf::Random(64).normalized();
  const Eigen::VectorXf value = Eigen::VectorXf::Random(64);
  Eigen::VectorXf output(64), loaded_output(64);
  fw::step(memory, state, {key, value, 0.5f}, {key}, {output});

  const auto path = std::filesystem::temp_directory_path() / "fastweights_stream_state.safetensors";
  fw::io::SafeTensorsWriter writer;
  fw::io::add_state(writer, state);
  writer.write(path);
  auto loaded = fw::initial_state(memory);
  fw::io::load_state(loaded, fw::io::SafeTensors::read(path));
  std::filesystem::remove(path);
  fw::step(memory, state, {key, value, 0.5f}, {key}, {output});
  fw::step(memory, loaded, {key, value, 0.5f}, {key}, {loaded_output});
  return output == loaded_output ? 0 : 1;
}
