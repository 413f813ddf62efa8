// Any bytes as a file: it is refused, or every tensor lies in it, can be read, and survives being
// written and read again.

#include <fastweights/io/safetensors.hpp>

#include "mutator.hpp"
#include "oracle.hpp"

namespace {

using fuzz::require;
using fuzz::succeeds;
using fw::io::DType;
using fw::io::SafeTensors;
using fw::io::SafeTensorsWriter;

void check_tensors(const SafeTensors& file, std::size_t data_bytes) {
  std::size_t total = 0;
  for (const std::string& name : file.names()) {
    const fw::io::TensorInfo info = file.info(name);
    const auto bytes = file.data(name);
    std::size_t size = width_of(info.dtype);
    for (const Eigen::Index axis : info.shape) {
      require(axis >= 0, "a negative axis");
      size *= static_cast<std::size_t>(axis);
    }
    require(size == bytes.size(), "a tensor of another size than its shape");
    unsigned sum = 0;  // a sanitizer sees bytes outside of the file
    for (const std::byte byte : bytes) sum += std::to_integer<unsigned>(byte);
    require(sum <= 255 * bytes.size(), "a sum of bytes");
    total += bytes.size();
  }
  require(total == data_bytes, "tensors that do not cover the data");
}

// One type for a tensor: errors are the slowest part of a run, and there are many runs.
void read_as(std::size_t type, const SafeTensors& file, const std::string& name) {
  Eigen::Matrix3d target;
  succeeds([&] {
    switch (type % 8) {
      case 0:
        return void(file.values<float>(name));
      case 1:
        return void(file.values<double>(name));
      case 2:
        return void(file.values<Eigen::half>(name));
      case 3:
        return void(file.values<Eigen::bfloat16>(name));
      case 4:
        return void(file.values<std::int64_t>(name));
      case 5:
        return void(file.values<std::uint8_t>(name));
      case 6:
        return void(file.matrix<float>(name));
      default:
        return file.copy_to(name, target);
    }
  });
}

// Returns false for a type that cannot be written.
bool copy_tensor(const SafeTensors& file, const std::string& name, SafeTensorsWriter& out) {
  const auto add = [&](const auto& values) { out.add(name, file.shape(name), values); };
  switch (file.dtype(name)) {
    case DType::F32:
      return add(file.values<float>(name)), true;
    case DType::F64:
      return add(file.values<double>(name)), true;
    case DType::F16:
      return add(file.values<Eigen::half>(name)), true;
    case DType::BF16:
      return add(file.values<Eigen::bfloat16>(name)), true;
    case DType::I64:
      return add(file.values<std::int64_t>(name)), true;
    default:
      return false;
  }
}

void check_round_trip(const SafeTensors& file) {
  SafeTensorsWriter out;
  for (const auto& [key, value] : file.metadata()) out.metadata(key, value);
  bool all = true;
  for (const std::string& name : file.names()) all = copy_tensor(file, name, out) && all;
  const auto copy = SafeTensors::parse(out.bytes(), "the file");
  require(copy.metadata() == file.metadata(), "metadata changed");
  require(!all || copy.names() == file.names(), "names changed");
  for (const std::string& name : copy.names()) {
    require(copy.shape(name) == file.shape(name), "a shape changed");
    require(fuzz::same_bytes(copy.data(name), file.data(name)), "a value changed");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  const std::vector<std::byte> bytes(begin, begin + size);  // of exactly this size
  succeeds([&] {
    const auto file = SafeTensors::view(bytes, "the file");
    std::uint64_t header = 0;
    std::memcpy(&header, data, 8);
    check_tensors(file, size - 8 - static_cast<std::size_t>(header));
    std::size_t type = size;
    for (const std::string& name : file.names()) read_as(type++, file, name);
    check_round_trip(file);
  });
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max, unsigned seed) {
  return fuzz::mutate(data, size, max, 0, seed);
}
