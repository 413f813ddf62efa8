// A matrix is written to a file and read again.
#include <cstdio>
#include <fastweights/io/safetensors.hpp>

int main() {
  const Eigen::Matrix2f weight{{1, 2}, {3, 4}};
  fw::io::SafeTensorsWriter out;
  out.add("weight", weight);
  out.write("weight.safetensors");
  const bool same =
      fw::io::SafeTensors::read("weight.safetensors").matrix<float>("weight") == weight;
  std::puts(same ? "file: the same matrix" : "file: another matrix");
  return same ? 0 : 1;
}
