#include "head.hpp"

namespace measure {

namespace {

// As an Eigen user would write it.
struct Sum {
  template <class S, int D> static void run(const Arrays& head) {
    NaiveHead<S, D> h(head);
    auto& [k, v, q, beta, decay, y, w] = h;
    for (Index t = 0; t < k.cols(); ++t) {
      w.noalias() += v.col(t) * k.col(t).transpose();
      y.col(t).noalias() = w * q.col(t);
    }
  }
};

}  // namespace

Naive naive_sum(bool is_double, Index d) { return naive_of<Sum>(is_double, d); }

}  // namespace measure
