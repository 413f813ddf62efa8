// Compares fw::onnx::linear_attention with every file of a folder and prints one line a file. The
// environment variable FASTWEIGHTS_ONNX_DIR names the folder, tests/data/onnx by default. Shapes
// and attributes are those of the file.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fastweights/io/safetensors.hpp>
#include <fastweights/onnx/linear_attention.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "data_folder.hpp"

namespace {

using fw::io::SafeTensors;

// A tensor of a file, if it is there. Entries are as precise as the file's, in type S.
template <class S, std::size_t rank> struct Values {
  std::vector<S> entries;
  std::array<Eigen::Index, rank> shape = {};

  Values(const SafeTensors& file, const std::string& name) {
    if (!file.contains(name)) return;
    const auto axes = file.shape(name);
    if (axes.size() != rank) throw std::runtime_error(name + " has another rank than expected");
    std::copy(axes.begin(), axes.end(), shape.begin());
    entries = file.template values<S>(name);
  }
  template <class T> fw::onnx::Tensor<T, rank> tensor() {
    return {entries.empty() ? nullptr : entries.data(), shape};
  }
};

template <class S>
double worst_error(const std::vector<S>& given, const std::vector<double>& expected) {
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double error = std::abs(static_cast<double>(given[i]) - expected[i]);
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
    largest = std::max(largest, std::abs(expected[i]));
  }
  return largest > 0 ? worst / largest : worst;
}

// The largest error of the outputs over the largest entry.
template <class S> double error_of(const SafeTensors& file) {
  const auto attributes = nlohmann::json::parse(file.metadata().at("attributes"));
  const std::string rule = attributes.value("update_rule", "gated_delta");
  Values<S, 3> query(file, "in.query"), key(file, "in.key"), value(file, "in.value"),
      decay(file, "in.decay"), beta(file, "in.beta"), output(file, "out.output");
  Values<S, 4> past(file, "in.past_state"), present(file, "out.present_state");
  std::fill(output.entries.begin(), output.entries.end(), S(NAN));
  std::fill(present.entries.begin(), present.entries.end(), S(NAN));
  fw::onnx::linear_attention<S>({.q_num_heads = attributes.at("q_num_heads"),
                                 .kv_num_heads = attributes.at("kv_num_heads"),
                                 .scale = attributes.value("scale", 0.0),
                                 .update_rule = rule},
                                {.query = query.template tensor<const S>(),
                                 .key = key.template tensor<const S>(),
                                 .value = value.template tensor<const S>(),
                                 .past_state = past.template tensor<const S>(),
                                 .decay = decay.template tensor<const S>(),
                                 .beta = beta.template tensor<const S>(),
                                 .output = output.template tensor<S>(),
                                 .present_state = present.template tensor<S>()});
  double error = worst_error(output.entries, file.template values<double>("out.output"));
  if (file.contains("out.present_state"))
    error = std::max(
        error, worst_error(present.entries, file.template values<double>("out.present_state")));
  return error;
}

// 16-bit files are rounded to 11 bits, or bfloat16 to 8.
double limit_of(const SafeTensors& file) {
  const auto dtype = file.dtype("out.output");
  if (dtype == fw::io::DType::F16) return 1e-3;
  if (dtype == fw::io::DType::BF16) return 8e-3;
  return 1e-6;
}

}  // namespace

int main() {
  const char* from_environment = std::getenv("FASTWEIGHTS_ONNX_DIR");
  const std::filesystem::path folder =
      from_environment ? from_environment : FASTWEIGHTS_REFERENCE_DIR "/onnx";
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  int passed = 0, failed = 0;
  for (const auto& path : files) try {
      const SafeTensors file = SafeTensors::read(path);
      const double error = error_of<float>(file);
      const bool right = error <= limit_of(file);
      std::printf("onnx %s: %.2e%s\n", path.stem().c_str(), error, right ? "" : "  FAILED");
      ++(right ? passed : failed);
    } catch (const std::exception& error) {
      std::printf("onnx %s: FAILED: %s\n", path.stem().c_str(), error.what());
      ++failed;
    }
  std::printf("%d passed, %d failed in %s\n", passed, failed, folder.c_str());
  return failed == 0 && passed > 0 ? 0 : 1;
}
