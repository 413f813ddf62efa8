// A user's program with the optional part for files: writes a matrix and reads it back.

#include <fastweights/io/safetensors.hpp>

int main() {
  const Eigen::Matrix2f weight{{1, 2}, {3, 4}};
  fw::io::SafeTensorsWriter out;
  out.add("weight", weight);
  out.write("consumer.safetensors");
  const fw::io::SafeTensors in = fw::io::SafeTensors::read("consumer.safetensors");
  return in.matrix<float>("weight") == weight ? 0 : 1;
}
