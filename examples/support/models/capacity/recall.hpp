#pragma once

#include <Eigen/Core>
#include <concepts>
#include <fastweights/math/random.hpp>
#include <memory>
#include <utility>
#include <vector>

/// \file
/// Interfaces of the memories of the capacity tasks. All pairs of a sequence are written, then the
/// queries are read. A value is the index of a one-hot vector.

/// The pairs and queries of one sequence, one a column, the answers and the gradients.
template <class S> struct Recall {
  using Matrix = Eigen::MatrixX<S>;
  using Row = Eigen::RowVectorX<S>;
  Matrix keys, queries, answers;  // d_key×L, d_key×Q, S×Q
  std::vector<int> values;        // L
  Row beta;                       // write strengths
  Matrix dkeys, dqueries, danswers;
  Row dbeta;

  void clear_gradient() {
    dkeys.setZero(keys.rows(), keys.cols());
    dqueries.setZero(queries.rows(), queries.cols());
    dbeta.setZero(beta.size());
  }
};

/// A feature map of any type.
template <class S> class AnyMap {
 public:
  using Matrix = Eigen::MatrixX<S>;

  template <class Map>
  requires(!std::same_as<Map, AnyMap>) AnyMap(Map map)  // NOLINT: implicit by design
      : map_(std::make_unique<Holder<Map>>(std::move(map))) {}

  Eigen::Index features(Eigen::Index d) const { return map_->features(d); }
  void map(const Matrix& x, Matrix& y) const { map_->map(x, y); }
  void vjp(const Matrix& x, const Matrix& y, const Matrix& dy, Matrix& dx) const {
    map_->vjp(x, y, dy, dx);
  }
  /// Draws random features anew; does nothing for other maps.
  void redraw(fw::Random& random) { map_->redraw(random); }

 private:
  struct Interface {
    virtual ~Interface() = default;
    virtual Eigen::Index features(Eigen::Index d) const = 0;
    virtual void map(const Matrix& x, Matrix& y) const = 0;
    virtual void vjp(const Matrix& x, const Matrix& y, const Matrix& dy, Matrix& dx) const = 0;
    virtual void redraw(fw::Random& random) = 0;
  };
  template <class Map> struct Holder final : Interface {
    explicit Holder(Map m) : inside(std::move(m)) {}
    Eigen::Index features(Eigen::Index d) const override { return inside.features(d); }
    void map(const Matrix& x, Matrix& y) const override { inside.map(x, y); }
    void vjp(const Matrix& x, const Matrix& y, const Matrix& dy, Matrix& dx) const override {
      inside.vjp(x, y, dy, dx);
    }
    void redraw(fw::Random& random) override { redraw_first(inside, random); }

    Map inside;
  };
  // The random features of a chain are those of its first map.
  template <class Map> static void redraw_first(Map& map, fw::Random& random) {
    if constexpr (requires { map.redraw(std::uint64_t{1}); })
      map.redraw(random.below(1ULL << 62));
    else if constexpr (requires { map.first; })
      redraw_first(map.first, random);
  }

  std::unique_ptr<Interface> map_;
};

/// A memory: writes the pairs of a sequence and answers its queries.
template <class S> class RecallRule {
 public:
  virtual ~RecallRule() = default;
  virtual void forward(Recall<S>& r) = 0;
  /// Gradients of the last forward pass, added to those of the recall.
  virtual void backward(Recall<S>& r) = 0;
  /// Draws random features anew.
  virtual void redraw(fw::Random&) {}
};
