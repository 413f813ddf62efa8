#include <fastweights/io/safetensors.hpp>

#include "together.hpp"

void check_files() {
  fw::io::SafeTensorsWriter writer;
  writer.add("a", random_matrix(30, 20, 1));
  const auto file = fw::io::SafeTensors::parse(writer.bytes());
  check_same("SafeTensors: reads of one file and its copies", [&](int) {
    for (int round = 0; round < 20; ++round) {
      const auto copy = file;
      if (copy.matrix<double>("a").cast<float>() != file.matrix<float>("a")) return MatrixXf(0, 0);
    }
    return MatrixXf(file.matrix<float>("a"));
  });
}
