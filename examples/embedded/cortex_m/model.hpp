#pragma once

#include <array>
#include <fastweights/algorithms/step.hpp>
#include <fastweights/feature_maps/normalise.hpp>
#include <fastweights/layers/parameters.hpp>
#include <fastweights/math/random.hpp>
#include <fastweights/memories/rules/gated_delta_rule.hpp>
#include <span>

/// Two blocks of 16 channels, each with two heads of a gated delta rule whose W is 8×8. All sizes
/// are known to the compiler, so a step is straight code without a heap.
struct Model {
  static constexpr int channels = 16, heads = 2, size = channels / heads, hidden = 2 * channels;
  using Memory = fw::GatedDeltaRule<float, size, size>;
  using Channels = Eigen::Vector<float, channels>;
  using Heads = std::array<fw::StateOf<Memory>, heads>;
  template <int rows, int columns> using Matrix = Eigen::Matrix<float, rows, columns>;

  /// x + W_o memory(W x), and behind it x + W_2 relu(W_1 x + b_1) + b_2, of normed x. The memory
  /// has unit keys and queries, and what is written decays as in fw::FastWeightLayer.
  struct Block {
    Channels norm1 = Channels::Ones(), norm2 = norm1;
    Matrix<channels, channels> key, value, query, output;
    Matrix<heads, channels> beta, alpha;
    Matrix<hidden, channels> up;
    Eigen::Vector<float, hidden> up_bias;
    Matrix<channels, hidden> down;
    Channels down_bias;
    static constexpr auto names = fw::names("norm1", "norm2", "key", "value", "query", "output",
                                            "beta", "alpha", "up", "up_bias", "down", "down_bias");

    /// Uniform in ±1/√columns.
    template <class Generator> void initialise(Generator& random) {
      fw::fill_uniform(random, 0.25, key, value, query, output, beta, alpha, up, up_bias);
      fw::fill_uniform(random, 0.18, down, down_bias);
    }

    void step(Heads& states, Channels& x) const {
      x += output * remembered(states, rms(x).cwiseProduct(norm1));
      const Channels normed = rms(x).cwiseProduct(norm2);
      x += down * (up * normed + up_bias).cwiseMax(0.0f) + down_bias;
    }

   private:
    static Channels rms(const Channels& x) {
      return x / std::sqrt(x.squaredNorm() / channels + 1e-5f);
    }
    static auto sigmoid(const Eigen::Vector<float, heads>& x) {
      return (1 + (-x.array()).exp()).inverse().eval();
    }
    Channels remembered(Heads& states, const Channels& x) const {
      const Channels v = value * x;
      Channels k = key * x, q = query * x, y;
      const auto strength = sigmoid(beta * x), decay = sigmoid(alpha * x).pow(1.0f / 16).eval();
      for (int h = 0; h < heads; ++h) {
        const auto at = [h](Channels& all) { return all.segment<size>(h * size); };
        at(k) /= at(k).norm();
        at(q) /= at(q).norm();
        const Eigen::Vector<float, size> kh = at(k), vh = v.segment<size>(h * size), qh = at(q);
        Eigen::Vector<float, size> yh;
        fw::step(Memory(), states[std::size_t(h)], {kh, vh, strength[h], decay[h]}, {qh}, {yh});
        at(y) = yh;
      }
      return y;
    }
  };

  Block first, second;
  static constexpr auto names = fw::names("first", "second");

  /// The state of one stream.
  struct Stream {
    Heads first, second;
  };
  Stream stream() const {
    const auto zero = fw::initial_state(Memory());
    return {{zero, zero}, {zero, zero}};
  }

  void step(Stream& s, std::span<const float> in, std::span<float> out) const {
    Channels x = Eigen::Map<const Channels>(in.data());
    first.step(s.first, x);
    second.step(s.second, x);
    Eigen::Map<Channels>(out.data()) = x;
  }
};
