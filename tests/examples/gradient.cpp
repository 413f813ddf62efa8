#include "examples/gradient.hpp"

#include <array>
#include <fastweights/math/random.hpp>
#include <string>
#include <training/any_model.hpp>

#include "support/catch.hpp"

namespace {

constexpr double step = 1e-6;

void check_parameter(const std::string& path, const fw::detail::Leaf* leaves, fw::Random& random,
                     const std::function<double()>& loss) {
  auto p = leaves[0].entries<double>();
  const auto g = leaves[1].entries<double>().matrix();
  const Eigen::ArrayXd before = p;
  Eigen::VectorXd along = before;
  const auto loss_at = [&](double distance) {
    p = before + distance * along.array();
    const double there = loss();
    p = before;
    return there;
  };
  for (int direction = 0; direction < 5; ++direction) {
    along = g;
    if (direction > 0 || g.norm() < 1e-9) random.fill(along);
    along /= along.norm();
    const double slope = (loss_at(step) - loss_at(-step)) / (2 * step);
    INFO(path << " direction " << direction);
    CHECK(slope == Catch::Approx(g.dot(along)).epsilon(1e-6).margin(1e-8));
  }
}

}  // namespace

void check_gradient(const fw::detail::Object& model, const fw::detail::Object& gradient,
                    const std::function<double()>& loss) {
  fw::Random random(9);
  const std::array objects{model, gradient};
  fw::detail::visit_leaves(objects.data(), objects.size(),
                           [&](const fw::detail::Leaf* leaves, const fw::detail::LeafPath& path) {
                             if (leaves->is_array && leaves->size() > 0)
                               check_parameter(path.text(), leaves, random, loss);
                           });
}

void check_sequence_gradient(SequenceModel& model, std::span<const TaskSequence> sequences) {
  const auto batch = static_cast<long>(sequences.size());
  auto gradient = fw::zero_gradient(AnyModel<double>(model));
  std::any buffers;
  model.run(sequences, batch, buffers, &gradient.model());
  check_gradient(model.parameters(), gradient.model().parameters(),
                 [&] { return model.run(sequences, batch, buffers).loss; });
}
