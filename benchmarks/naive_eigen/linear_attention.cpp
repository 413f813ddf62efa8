#include "head.hpp"

namespace measure {

// As an Eigen user would write it.
template <class S, int D> void Sum::naive(const Arrays& head) {
  NaiveHead<S, D> h(head);
  auto& [k, v, q, beta, decay, y, w] = h;
  for (Index t = 0; t < k.cols(); ++t) {
    w.noalias() += v.col(t) * k.col(t).transpose();
    y.col(t).noalias() = w * q.col(t);
  }
}

template void Sum::naive<float, 16>(const Arrays&);
template void Sum::naive<float, 32>(const Arrays&);
template void Sum::naive<float, 48>(const Arrays&);
template void Sum::naive<float, 64>(const Arrays&);
template void Sum::naive<float, 128>(const Arrays&);
template void Sum::naive<float, 256>(const Arrays&);
template void Sum::naive<float, Dynamic>(const Arrays&);
template void Sum::naive<double, 64>(const Arrays&);
template void Sum::naive<double, 128>(const Arrays&);
template void Sum::naive<double, Dynamic>(const Arrays&);

}  // namespace measure
