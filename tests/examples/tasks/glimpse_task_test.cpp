#include <algorithm>
#include <random>
#include <tasks/glimpse_task.hpp>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace {

using Bytes = std::vector<std::uint8_t>;

struct Folder : TemporaryFolder {
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(*this / name, std::ios::binary) << content;
    return (*this / name).string();
  }
};

std::string text(const Bytes& bytes) { return {bytes.begin(), bytes.end()}; }

// A line of the digits whose pixels are i % 17.
std::string line(const std::string& last) {
  std::string all;
  for (int i = 0; i < 64; ++i) all += std::to_string(i % 17) + ",";
  return all + last + "\n";
}

Images counting(int side) {
  Images images{side, 100, {}, {}};
  Bytes pixels(static_cast<std::size_t>(side * side));
  std::iota(pixels.begin(), pixels.end(), std::uint8_t{0});
  images.add(pixels, 7);
  std::ranges::reverse(pixels);
  images.add(pixels, 3);
  return images;
}

}  // namespace

TEST_CASE("Glimpses: each quarter coarse, in four, and coarse again", "[glimpses]") {
  const std::vector<Glimpse> order = glimpse_order(28, 7);
  REQUIRE(order.size() == 24);
  CHECK(std::ranges::equal(
      std::span(order).first(6),
      std::array<Glimpse, 6>{
          {{0, 0, 14}, {0, 0, 7}, {0, 7, 7}, {7, 0, 7}, {7, 7, 7}, {0, 0, 14}}}));
  CHECK((order[6] == Glimpse{0, 14, 14}));
  CHECK((order[22] == Glimpse{21, 21, 7}));
  std::array<int, 28 * 28> fine{}, coarse{};  // how often a pixel is seen
  for (const Glimpse& g : order)
    for (int r = 0; r < g.width; ++r)
      for (int c = 0; c < g.width; ++c)
        ++(g.width == 7 ? fine : coarse)
              .at(static_cast<std::size_t>((g.row + r) * 28 + g.column + c));
  CHECK(std::ranges::all_of(fine, [](int n) { return n == 1; }));
  CHECK(std::ranges::all_of(coarse, [](int n) { return n == 2; }));
  CHECK((glimpse_order(8, 3)[18] == Glimpse{4, 4, 4}));
  CHECK((glimpse_order(8, 3)[22] == Glimpse{5, 5, 3}));
  for (const auto& [side, patch] : {std::pair{4, 3}, {13, 4}, {28, 6}, {4, 0}})
    CHECK_THROWS_WITH(
        glimpse_order(side, patch),
        Catch::Matchers::ContainsSubstring("expected an even side, of two to four glimpses"));
}

TEST_CASE("Glimpses: pixels, and their means, from 0 to 1", "[glimpses]") {
  const GlimpseSequences sequences(counting(4), 1);
  CHECK(sequences.targets == std::vector{7, 3});
  SequenceBatch batch;
  sequences.gather(std::vector{1, 0}, batch);
  REQUIRE((batch.vectors.rows() == 1 && batch.vectors.cols() == 48));
  const std::array expected{2.5, 0.0, 1.0, 4.0, 5.0, 2.5, 4.5, 2.0, 3.0, 6.0, 7.0, 4.5};
  for (Eigen::Index i = 0; i < 12; ++i) {
    CHECK(batch.vectors(0, 24 + i) ==
          Catch::Approx(expected.at(static_cast<std::size_t>(i)) / 100));
    CHECK(batch.vectors(0, i) ==
          Catch::Approx((15 - expected.at(static_cast<std::size_t>(i))) / 100));
  }
  const GlimpseSequences wide(counting(6), 2);  // quarters of 3x3 pixels, seen as 2x2 means
  wide.gather(std::vector{0}, batch);
  CHECK((batch.vectors.col(1).cast<double>() * 100 - Eigen::Vector4d(0, 1, 6, 7)).norm() < 1e-5);
  // the upper left mean: pixel 0 whole, 1 and 6 by half and 7 by a quarter, of 2.25 pixels
  CHECK((batch.vectors.col(0).cast<double>() * 225 - Eigen::Vector4d(5.25, 8.25, 23.25, 26.25))
            .norm() < 1e-5);
}

TEST_CASE("Digits: read from lines of 65 numbers, or refused", "[glimpses]") {
  const Folder folder;
  const Images images = read_digits(folder.write("two.csv", line("4") + line("9")));
  CHECK(images.size() == 2);
  CHECK(images.targets == std::vector{4, 9});
  CHECK(images.at(1)[20] == 3);
  const auto refused = [&](const std::string& content) {
    CHECK_THROWS_WITH(read_digits(folder.write("bad.csv", content)),
                      Catch::Matchers::ContainsSubstring("expected 64 pixels from 0 to 16"));
  };
  refused(line("10"));
  refused(line("4,1"));
  refused("17" + line("4").substr(1));
  refused("1,2,3\n");
  refused(line("4,10"));
  refused(line("four"));
  refused("");
  CHECK_THROWS_WITH(read_digits((folder / "none").string()),
                    Catch::Matchers::ContainsSubstring("script/parts/digits FILE writes them"));
}

TEST_CASE("MNIST: two IDX files become images, or are refused", "[glimpses]") {
  const Folder folder;
  const Bytes header{0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2};
  const Bytes labels{0, 0, 8, 1, 0, 0, 0, 2, 5, 8};
  const std::string pixels = text({1, 2, 3, 4, 250, 251, 252, 253});
  folder.write("train-images-idx3-ubyte", text(header) + pixels);
  folder.write("train-labels-idx1-ubyte", text(labels));
  const Images images = read_mnist(folder.path(), "train");
  CHECK(images.side == 2);
  CHECK(images.targets == std::vector{5, 8});
  CHECK(std::ranges::equal(images.at(1), Bytes{250, 251, 252, 253}));

  using Catch::Matchers::ContainsSubstring;
  folder.write("train-images-idx3-ubyte", text(header) + pixels + "x");
  CHECK_THROWS_WITH(read_mnist(folder.path(), "train"), ContainsSubstring("its size is not what"));
  folder.write("train-images-idx3-ubyte", text(labels));
  CHECK_THROWS_WITH(read_mnist(folder.path(), "train"), ContainsSubstring("3 dimensions"));
  CHECK_THROWS_WITH(read_mnist(folder.path(), "t10k"), ContainsSubstring("cannot read"));
  // No images are no MNIST, nor are sizes whose product is 0 only in 64 bits.
  folder.write("train-labels-idx1-ubyte", text({0, 0, 8, 1, 0, 0, 0, 0}));
  folder.write("train-images-idx3-ubyte", text({0, 0, 8, 3, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 2}));
  CHECK_THROWS_WITH(read_mnist(folder.path(), "train"), ContainsSubstring("0 images and 0 labels"));
  folder.write("train-images-idx3-ubyte", text({0, 0, 8, 3, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0}));
  CHECK_THROWS_WITH(read_mnist(folder.path(), "train"), ContainsSubstring("its size is not what"));
}

TEST_CASE("Warped images: the images themselves first, then others of the same digits",
          "[glimpses]") {
  const Images images = counting(4);
  const Images still = warped(images, 3, 1, {0, 0}), moved = warped(images, 3, 1);
  REQUIRE(still.size() == 6);
  CHECK(still.targets == std::vector{7, 3, 7, 3, 7, 3});
  CHECK(moved.targets == still.targets);
  for (std::size_t i = 0; i < 6; ++i) CHECK(std::ranges::equal(still.at(i), images.at(i % 2)));
  for (std::size_t i = 0; i < 6; ++i)
    CHECK(std::ranges::equal(moved.at(i), images.at(i % 2)) == (i < 2));
  CHECK(warped(images, 3, 1).pixels == moved.pixels);
  CHECK(warped(images, 3, 2).pixels != moved.pixels);
  const Bytes& pixels = images.pixels;
  CHECK(interpolate(std::span(pixels).first(16), 4, 1.5, 2.25) == Catch::Approx(8.25));
  CHECK(interpolate(std::span(pixels).first(16), 4, 3.5, 3) == Catch::Approx(7.5));
  CHECK(interpolate(std::span(pixels).first(16), 4, -1, 0) == 0);
}
