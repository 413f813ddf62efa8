// Writes what the device needs: weights, tokens, and the outputs that they give here.
#include <cstdio>
#include <exception>
#include <fastweights/io/weights.hpp>

#include "model.hpp"

int main(int count, char** arguments) try {
  if (count != 2) throw std::invalid_argument("host: expected the file to write");
  Model model;
  fw::Random random(1);
  fw::initialise(model, random);
  Eigen::MatrixXf tokens(Model::channels, 200), outputs(tokens.rows(), tokens.cols());
  random.fill(tokens);
  auto stream = model.stream();
  const auto column = static_cast<std::size_t>(tokens.rows());
  for (fw::Index t = 0; t < tokens.cols(); ++t)
    model.step(stream, {tokens.col(t).data(), column}, {outputs.col(t).data(), column});

  fw::io::SafeTensorsWriter file;
  fw::io::add_parameters(file, model, "model");
  file.add("tokens", tokens);
  file.add("outputs", outputs);
  file.write(arguments[1]);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
