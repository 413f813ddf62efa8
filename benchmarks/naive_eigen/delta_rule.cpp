#include "head.hpp"

namespace measure {

// As an Eigen user would write it.
template <class S, int D> void Delta::naive(const Arrays& head) {
  NaiveHead<S, D> h(head);
  auto& [k, v, q, beta, decay, y, w] = h;
  for (Index t = 0; t < k.cols(); ++t) {
    w.noalias() += beta(t) * (v.col(t) - w * k.col(t)) * k.col(t).transpose();
    y.col(t).noalias() = w * q.col(t);
  }
}

template void Delta::naive<float, 16>(const Arrays&);
template void Delta::naive<float, 32>(const Arrays&);
template void Delta::naive<float, 48>(const Arrays&);
template void Delta::naive<float, 64>(const Arrays&);
template void Delta::naive<float, 128>(const Arrays&);
template void Delta::naive<float, 256>(const Arrays&);
template void Delta::naive<float, Dynamic>(const Arrays&);
template void Delta::naive<double, 64>(const Arrays&);
template void Delta::naive<double, 128>(const Arrays&);
template void Delta::naive<double, Dynamic>(const Arrays&);

}  // namespace measure
