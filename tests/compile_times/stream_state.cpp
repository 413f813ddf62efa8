// limit: 4
// A stream that is saved and goes on from the file with the same bits.
#include <fastweights/algorithms/step.hpp>
#include <fastweights/io/weights.hpp>
#include <fastweights/memories/rules/delta_rule.hpp>
#include <filesystem>

int main() {
  const fw::DeltaRule<float> memory({.key_size = 64});
  auto state = fw::initial_state(memory);
  const Eigen::VectorXf key = Eigen::VectorXf::Random(64).normalized();
  const Eigen::VectorXf value = Eigen::VectorXf::Random(64);
  Eigen::VectorXf answer(64), again(64);
  fw::step(memory, state, {key, value, 0.5f}, {key}, {answer});

  const auto path = std::filesystem::temp_directory_path() / "fastweights_stream_state.safetensors";
  fw::io::SafeTensorsWriter writer;
  fw::io::add_state(writer, state);
  writer.write(path);
  auto loaded = fw::initial_state(memory);
  fw::io::load_state(loaded, fw::io::SafeTensors::read(path));
  std::filesystem::remove(path);
  fw::step(memory, state, {key, value, 0.5f}, {key}, {answer});
  fw::step(memory, loaded, {key, value, 0.5f}, {key}, {again});
  return answer == again ? 0 : 1;
}
