#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <fastweights/core/random.hpp>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "shuffle.hpp"

/// \file
/// The glimpse task of Ba et al. 2016, arXiv 1610.06258, section 4.2: an image of a digit is seen
/// as 24 small glimpses in a fixed order on two levels, and the digit is asked for after the last.

/// Square images, one behind the other and each row by row, and what they show.
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
                             "': script/digits FILE writes them, --digits FILE names them");
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

// The bytes of an IDX file of unsigned bytes with that many dimensions, whose sizes it leaves.
template <std::size_t Dimensions>
std::vector<std::uint8_t> read_idx(const std::filesystem::path& path,
                                   std::array<std::uint32_t, Dimensions>& sizes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read '" + path.string() + "'");
  const std::uint32_t magic = read_big_endian(file);
  if (magic != 0x800 + Dimensions)
    throw std::runtime_error(path.string() + ": no IDX file of bytes with " +
                             std::to_string(Dimensions) + " dimensions");
  std::size_t total = 1;
  for (std::uint32_t& size : sizes) total *= size = read_big_endian(file);
  if (!file || total != std::filesystem::file_size(path) - 4 * (Dimensions + 1))
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
  const auto labels = detail::read_idx(folder / (part + "-labels-idx1-ubyte"), count);
  if (sizes[0] != count[0] || sizes[1] != sizes[2])
    throw std::runtime_error(file.string() + ": expected square images, as many as labels");
  if (!std::ranges::all_of(labels, [](std::uint8_t label) { return label < 10; }))
    throw std::runtime_error(file.string() + ": expected labels from 0 to 9");
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

/// 0 … count − 1 in an order that a seed draws.
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

/// How far images are warped at most: the entries of the linear map off the identity, and the shift
/// in parts of the image's side.
struct Warp {
  double linear = 0.15, shift = 0.08;
};

/// Each of the images as it is and, `copies` − 1 times, under a random affine map: what a small set
/// of images lacks in variety.
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

/// Where a glimpse lies: `patch` by `patch` values, each the mean of scale×scale pixels.
struct Glimpse {
  int row = 0, column = 0, scale = 1;
  bool operator==(const Glimpse&) const = default;
};

/// For each quarter of the image: the whole of it at half the resolution, its four quarters, and
/// the whole of it again. A quarter is 2·patch wide and begins at the image's edge, so that
/// quarters meet where the image is 4·patch wide (MNIST, patches of 7) and overlap where it is
/// narrower (8 pixels, patches of 3).
inline std::vector<Glimpse> glimpse_order(int side, int patch) {
  if (patch < 1 || side < 2 * patch)
    throw std::invalid_argument("glimpses of " + std::to_string(patch) + " in images of " +
                                std::to_string(side) + ": an image takes at least two abreast");
  std::vector<Glimpse> order;
  const std::array starts{0, side - 2 * patch};
  for (const int row : starts)
    for (const int column : starts) {
      order.push_back({row, column, 2});
      for (const int down : {0, patch})
        for (const int right : {0, patch}) order.push_back({row + down, column + right, 1});
      order.push_back({row, column, 2});
    }
  return order;
}

/// Images as sequences of glimpses, with the class of each.
struct GlimpseSequences {
  using Batch = Eigen::MatrixXf;

  Images images;
  int patch = 0;
  std::vector<Glimpse> order;
  std::vector<int> targets;

  GlimpseSequences(Images all, int width)
      : images(std::move(all)),
        patch(width),
        order(glimpse_order(images.side, width)),
        targets(images.targets) {}

  std::size_t size() const { return targets.size(); }

  /// The glimpses of some of the images, patch² values from 0 to 1 a column.
  void gather(std::span<const int> which, Batch& batch) const {
    batch.resize(patch * patch, static_cast<Eigen::Index>(which.size() * order.size()));
    Eigen::Index column = 0;
    for (const int i : which)
      for (const Glimpse& glimpse : order)
        look(images.at(static_cast<std::size_t>(i)), glimpse, batch.col(column++));
  }

 private:
  template <class Column>
  void look(std::span<const std::uint8_t> image, const Glimpse& g, Column&& seen) const {
    const float part = 1.0f / static_cast<float>(images.white * g.scale * g.scale);
    for (int r = 0; r < patch; ++r)
      for (int c = 0; c < patch; ++c) {
        int sum = 0;
        for (int y = 0; y < g.scale; ++y)
          for (int x = 0; x < g.scale; ++x)
            sum += image[static_cast<std::size_t>((g.row + r * g.scale + y) * images.side +
                                                  g.column + c * g.scale + x)];
        seen[r * patch + c] = static_cast<float>(sum) * part;
      }
  }
};
