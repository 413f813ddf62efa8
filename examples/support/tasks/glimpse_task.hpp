#pragma once

#include <Eigen/SparseCore>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <fastweights/math/random.hpp>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tasks/sequence_batch.hpp"
#include "tasks/shuffle.hpp"

/// \file
/// The glimpse task of Ba et al. 2016, arXiv 1610.06258, section 4.2: an image of a digit is seen
/// as 24 small glimpses in a fixed order on two levels. The answer after the last one is the digit.

/// Square images, one behind the other and each row by row, and their digits.
struct Images {
  int side = 0;
  int white = 255;  ///< the largest value of a pixel
  std::vector<std::uint8_t> pixels;
  std::vector<int> targets;

  std::size_t size() const { return targets.size(); }

  /// Image i.
  std::span<const std::uint8_t> at(std::size_t i) const {
    const auto each = static_cast<std::size_t>(side * side);
    return std::span(pixels).subspan(i * each, each);
  }
  void add(std::span<const std::uint8_t> image, int target) {
    pixels.insert(pixels.end(), image.begin(), image.end());
    targets.push_back(target);
  }
};

/// The handwritten digits that scikit-learn ships: a line an image, 64 pixels from 0 to 16 and the
/// digit, joined by commas.
inline Images read_digits(const std::string& path) {
  std::ifstream file(path);
  if (!file)
    throw std::runtime_error("cannot read the digits '" + path +
                             "': script/parts/digits FILE writes them, --digits FILE names them");
  Images images{8, 16, {}, {}};
  std::array<std::uint8_t, 64> image{};
  for (std::string line; std::getline(file, line);) {
    std::istringstream values(line);
    std::string value;
    std::size_t count = 0;
    int number = 0;
    bool good = true;
    for (; good && std::getline(values, value, ','); count += good) {
      const char* end = value.data() + value.size();
      good = std::from_chars(value.data(), end, number).ptr == end && !value.empty() &&
             number >= 0 && number <= (count < 64 ? 16 : 9);
      if (good && count < 64) image.at(count) = static_cast<std::uint8_t>(number);
    }
    if (count != 65 || !good)
      throw std::runtime_error(path + ", line " + std::to_string(images.size() + 1) +
                               ": expected 64 pixels from 0 to 16 and a digit");
    images.add(image, number);
  }
  if (images.size() == 0)
    throw std::runtime_error(path + ": expected 64 pixels from 0 to 16 and a digit a line");
  return images;
}

namespace detail {

// A number of four bytes, the highest first.
inline std::uint32_t read_big_endian(std::istream& file) {
  std::array<char, 4> bytes{};
  file.read(bytes.data(), 4);
  std::uint32_t number = 0;
  for (const char c : bytes) number = number << 8 | static_cast<unsigned char>(c);
  return number;
}

// The bytes of an IDX file of unsigned bytes with that many dimensions. Sets their sizes.
template <std::size_t Dimensions>
std::vector<std::uint8_t> read_idx(const std::filesystem::path& path,
                                   std::array<std::uint32_t, Dimensions>& sizes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read '" + path.string() + "'");
  const std::uint32_t magic = read_big_endian(file);
  if (magic != 0x800 + Dimensions)
    throw std::runtime_error(path.string() + ": no IDX file of bytes with " +
                             std::to_string(Dimensions) + " dimensions");
  double exact = 1;  // where the product of the sizes cannot wrap
  for (std::uint32_t& size : sizes) exact *= size = read_big_endian(file);
  const std::size_t total = std::filesystem::file_size(path) - 4 * (Dimensions + 1);
  if (!file || exact != static_cast<double>(total))
    throw std::runtime_error(path.string() + ": its size is not what its header says");
  std::vector<std::uint8_t> bytes(total);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(total));
  return bytes;
}

}  // namespace detail

/// A part of MNIST, "train" or "t10k", from its two files in a folder.
inline Images read_mnist(const std::filesystem::path& folder, const std::string& part) {
  std::array<std::uint32_t, 3> sizes{};
  std::array<std::uint32_t, 1> count{};
  Images images;
  const auto file = folder / (part + "-images-idx3-ubyte");
  images.pixels = detail::read_idx(file, sizes);
  const auto labels_file = folder / (part + "-labels-idx1-ubyte");
  const auto labels = detail::read_idx(labels_file, count);
  if (sizes[1] != sizes[2])
    throw std::runtime_error(file.string() + ": images of " + std::to_string(sizes[1]) + "x" +
                             std::to_string(sizes[2]) + ", expected square ones");
  if (sizes[0] != count[0] || count[0] == 0)
    throw std::runtime_error(file.string() + ": " + std::to_string(sizes[0]) + " images and " +
                             std::to_string(count[0]) + " labels, expected as many, and some");
  if (!std::ranges::all_of(labels, [](std::uint8_t label) { return label < 10; }))
    throw std::runtime_error(labels_file.string() + ": expected labels from 0 to 9");
  images.side = static_cast<int>(sizes[1]);
  images.targets.assign(labels.begin(), labels.end());
  return images;
}

/// `count` images from `first` on in the order of `which`.
inline Images select(const Images& images, std::span<const int> which) {
  Images some{images.side, images.white, {}, {}};
  for (const int i : which)
    some.add(images.at(static_cast<std::size_t>(i)), images.targets[static_cast<std::size_t>(i)]);
  return some;
}

/// 0 … count − 1 in an order drawn from a seed.
inline std::vector<int> shuffled(std::size_t count, std::uint64_t seed) {
  fw::Random random(seed);
  std::vector<int> all(count);
  std::iota(all.begin(), all.end(), 0);
  shuffle(all, random);
  return all;
}

/// The pixel at a place between pixels, by linear interpolation; 0 outside.
inline double interpolate(std::span<const std::uint8_t> image, int side, double row,
                          double column) {
  const double top = std::floor(row), left = std::floor(column);
  const auto at = [&](double r, double c) {
    if (r < 0 || c < 0 || r >= side || c >= side) return 0.0;
    return static_cast<double>(image[static_cast<std::size_t>(r * side + c)]);
  };
  const double down = row - top, right = column - left;
  return (1 - down) * ((1 - right) * at(top, left) + right * at(top, left + 1)) +
         down * ((1 - right) * at(top + 1, left) + right * at(top + 1, left + 1));
}

/// The largest distortion of images: the difference of the linear map's entries to the identity,
/// and the shift in parts of the image's side.
struct Warp {
  double linear = 0.15, shift = 0.08;
};

/// Each of the images, and `copies` − 1 random affine maps of it: more variety for a small set of
/// images.
inline Images warped(const Images& images, int copies, std::uint64_t seed, const Warp& warp = {}) {
  fw::Random random(seed);
  const auto within = [&](double bound) { return bound * (2 * random.uniform() - 1); };
  Images all = images;
  std::vector<std::uint8_t> image(images.pixels.size() / images.size());
  const double middle = (images.side - 1) / 2.0, shift = warp.shift * images.side;
  for (int copy = 1; copy < copies; ++copy)
    for (std::size_t i = 0; i < images.size(); ++i) {
      const double a = 1 + within(warp.linear), b = within(warp.linear), c = within(warp.linear),
                   d = 1 + within(warp.linear), down = within(shift), right = within(shift);
      for (int row = 0; row < images.side; ++row)
        for (int column = 0; column < images.side; ++column) {
          const double y = row - middle, x = column - middle;
          image[static_cast<std::size_t>(row * images.side + column)] = static_cast<std::uint8_t>(
              std::lround(interpolate(images.at(i), images.side, a * y + b * x + middle + down,
                                      c * y + d * x + middle + right)));
        }
      all.add(image, images.targets[i]);
    }
  return all;
}

/// The place of a glimpse: a square of `width` pixels, seen as `patch` by `patch` means.
struct Glimpse {
  int row = 0, column = 0, width = 0;
  bool operator==(const Glimpse&) const = default;
};

/// For each quarter of the image: the whole at low resolution, four parts of it pixel by pixel, and
/// the whole again. The parts lie in the quarter's corners: they meet in the middle where it
/// is 2·patch wide (14 pixels of MNIST, patches of 7) and overlap where it is narrower (4 pixels,
/// patches of 3).
inline std::vector<Glimpse> glimpse_order(int side, int patch) {
  if (patch < 1 || side % 2 != 0 || side < 2 * patch || side > 4 * patch)
    throw std::invalid_argument("glimpses of " + std::to_string(patch) + " in images of " +
                                std::to_string(side) +
                                ": expected an even side, of two to four glimpses");
  std::vector<Glimpse> order;
  const int quarter = side / 2, last = quarter - patch;
  for (const int row : {0, quarter})
    for (const int column : {0, quarter}) {
      order.push_back({row, column, quarter});
      for (const int down : {0, last})
        for (const int right : {0, last}) order.push_back({row + down, column + right, patch});
      order.push_back({row, column, quarter});
    }
  return order;
}

/// The weights of the pixels 0 … width − 1 in the mean of each of `patch` equal parts.
inline Eigen::MatrixXf mean_weights(int patch, int width) {
  Eigen::MatrixXf weights(patch, width);
  for (int part = 0; part < patch; ++part)
    for (int pixel = 0; pixel < width; ++pixel) {  // in parts of 1/patch of a pixel
      const int from = std::max(part * width, pixel * patch);
      const int to = std::min((part + 1) * width, (pixel + 1) * patch);
      weights(part, pixel) = static_cast<float>(std::max(0, to - from)) / static_cast<float>(width);
    }
  return weights;
}

/// The linear map from the pixels of an image to all of its glimpses, patch² values each.
inline Eigen::SparseMatrix<float, Eigen::RowMajor> glimpse_map(int side, int patch) {
  std::vector<Eigen::Triplet<float>> entries;
  int value = 0;
  for (const Glimpse& g : glimpse_order(side, patch)) {
    const Eigen::MatrixXf weights = mean_weights(patch, g.width);
    for (int r = 0; r < patch; ++r)
      for (int c = 0; c < patch; ++c, ++value)
        for (int y = 0; y < g.width; ++y)
          for (int x = 0; x < g.width; ++x)
            if (const float weight = weights(r, y) * weights(c, x); weight != 0)
              entries.emplace_back(value, (g.row + y) * side + g.column + x, weight);
  }
  Eigen::SparseMatrix<float, Eigen::RowMajor> map(value, side * side);
  map.setFromTriplets(entries.begin(), entries.end());
  return map;
}

/// Images as sequences of glimpses, with the class of each.
struct GlimpseSequences {
  Images images;
  int patch = 0;
  std::vector<int> targets;

  GlimpseSequences(Images all, int width)
      : images(std::move(all)),
        patch(width),
        targets(images.targets),
        map_(glimpse_map(images.side, width)) {}

  std::size_t size() const { return targets.size(); }

  /// The glimpses of some of the images, patch² values from 0 to 1 a column.
  void gather(std::span<const int> which, SequenceBatch& batch) const {
    const auto count = static_cast<Eigen::Index>(which.size());
    Eigen::MatrixXf pixels(map_.cols(), count);
    for (Eigen::Index i = 0; i < count; ++i) {
      const auto image = images.at(static_cast<std::size_t>(which[static_cast<std::size_t>(i)]));
      pixels.col(i) =
          Eigen::Map<const Eigen::Vector<std::uint8_t, Eigen::Dynamic>>(image.data(), map_.cols())
              .cast<float>() /
          static_cast<float>(images.white);
    }
    batch.vectors.resize(patch * patch, map_.rows() / (patch * patch) * count);
    Eigen::MatrixXf::Map(batch.vectors.data(), map_.rows(), count) = map_ * pixels;
  }

 private:
  Eigen::SparseMatrix<float, Eigen::RowMajor> map_;
};
