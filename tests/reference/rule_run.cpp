#include "rule_run.hpp"

#include <fastweights/math/softmax.hpp>

namespace reference {

namespace {

// [B, X, Y, D] as [B, Y, X, D].
Array with_swapped_axes(const Array& array, Index batches, Index x, Index y) {
  const Index d = Index(array.values.size()) / (batches * x * y);
  Array swapped{{batches, y, x, d}, std::vector<double>(array.values.size())};
  for (Index b = 0; b < batches; ++b)
    for (Index i = 0; i < x; ++i)
      for (Index j = 0; j < y; ++j)
        std::copy_n(array.values.begin() + ((b * x + i) * y + j) * d, d,
                    swapped.at(((b * y + j) * x + i) * d));
  return swapped;
}

}  // namespace

Array Inputs::steps_first(const Array& output) const {
  return layout_.heads_first ? with_swapped_axes(output, output.axis(0), output.axis(1), steps_)
                             : output;
}
Array Inputs::file_order(const Array& output) const {
  return layout_.heads_first ? with_swapped_axes(output, output.axis(0), steps_, output.axis(2))
                             : output;
}

Inputs::Inputs(Case& file, const Layout& layout, const std::set<std::string_view>& members)
    : file_(file), layout_(layout), members_(members) {
  const Array o = file["o"];
  if (layout.heads_first)
    steps_ = Index(o.values.size()) / (o.axis(0) * o.axis(1) * o.shape.back());
  for (const auto member : members) {
    const std::string name = name_of(member);
    if (const auto constant = layout.constants.find(member); constant != layout.constants.end()) {
      Array& same = arrays_[name] = {{o.axis(0), o.axis(1), o.axis(2)}, {}};
      same.values.resize(o.values.size() / std::size_t(o.axis(3)), constant->second);
      continue;
    }
    Array array = steps_first(file[name]);
    given_[name] = array;
    if (layout.logarithms.contains(member)) array.flat() = array.flat().array().exp();
    if (is_normalised(member)) {
      auto columns = array.columns();
      columns.array().rowwise() /=
          (columns.colwise().squaredNorm().array() + layout.normalise).sqrt();
    }
    if (member == "query" && layout.scales_query) array.flat() *= scale(array);
    arrays_[name] = array;
  }
}

bool Inputs::is_normalised(std::string_view member) const {
  return layout_.normalise >= 0 && (member == "query" || member == "key");
}
double Inputs::scale(const Array& query) const { return 1 / std::sqrt(double(query.axis(3))); }

Inputs Inputs::zeros() const {
  Inputs zero = *this;
  for (auto& [name, array] : zero.arrays_) array.flat().setZero();
  return zero;
}

void Inputs::compare(const std::string& kind, Inputs& gradients) const {
  std::set<std::string> done;  // members may share an array
  for (const auto member : members_) {
    const std::string name = name_of(member);
    if (layout_.constants.contains(member) || !done.insert(name).second) continue;
    Array d = gradients.of(member), given = given_.at(name), ours = of(member);
    if (member == "query" && layout_.scales_query) d.flat() *= scale(d);
    if (is_normalised(member)) {
      const auto x = given.columns();
      auto dx = d.columns();
      for (Index i = 0; i < x.cols(); ++i) {
        const double square = x.col(i).squaredNorm() + layout_.normalise;
        const double along = x.col(i).dot(dx.col(i)) / square;
        dx.col(i) = (dx.col(i) - along * x.col(i)) / std::sqrt(square);
      }
    }
    if (layout_.logarithms.contains(member)) d.flat().array() *= ours.flat().array();
    file_.gradient(kind + name, file_order(d));
  }
}

namespace {

// Calls f(entry of the leaf, entry of the array) for the entries of a place.
template <class F>
void for_each_entry(const fw::detail::Leaf& leaf, Array& array, const States::Place& place,
                    const F& f) {
  auto* const entries = static_cast<double*>(leaf.data);
  for (Index i = 0; i < leaf.size(); ++i)
    f(entries[place.key_major ? i : leaf.from_row_major(i)],
      *array.at(place.part * leaf.size() + i));
}
void load(const fw::detail::Leaf& leaf, Array array, const States::Place& place) {
  for_each_entry(leaf, array, place, [](double& ours, double theirs) { ours = theirs; });
}

}  // namespace

// Calls f(leaf, place) for every leaf of a state that the file has.
template <class F>
void States::visit(const fw::detail::Object& state, Index b, Index h, bool is_final, const F& f) {
  const auto visit_leaf = [&](const fw::detail::Leaf* leaf, const fw::detail::LeafPath& path) {
    if (const auto kept = layout_.state.find(path.text()); kept != layout_.state.end()) {
      const Layout::Kept& k = kept->second;
      const std::string& name = is_final ? k.final : k.initial;
      if (file_.has(name)) f(*leaf, Place{name, b * heads_ + h, k.key_major, k.softmax});
    }
    if (const auto slow = layout_.slow.find(path.text()); slow != layout_.slow.end() && !is_final)
      f(*leaf, Place{slow->second, h, true, false});
  };
  fw::detail::visit_leaves(&state, 1, visit_leaf);
}

void States::load_initial(const fw::detail::Object& state, Index b, Index h) {
  visit(state, b, h, false, [&](const fw::detail::Leaf& leaf, const Place& place) {
    load(leaf, file_[place.name], place);
  });
}

void States::load_gradient(const fw::detail::Object& dstate, Index b, Index h) {
  visit(dstate, b, h, true, [&](const fw::detail::Leaf& leaf, const Place& place) {
    Array up = file_["up_" + place.name];
    if (place.softmax) {
      Array weights = file_[place.name];
      for (Index i = 0; i < up.columns().cols(); ++i)
        fw::detail::softmax_vjp_in_place(weights.columns().col(i), up.columns().col(i));
    }
    load(leaf, up, place);
  });
}

void States::keep_final(const fw::detail::Object& state, Index b, Index h) {
  visit(state, b, h, true, [&](const fw::detail::Leaf& leaf, const Place& place) {
    Array& final = finals_.try_emplace(place.name, file_.like(place.name)).first->second;
    for_each_entry(leaf, final, place, [](double ours, double& kept) { kept = ours; });
  });
}

void States::keep_gradient(const fw::detail::Object& dstate, Index b, Index h) {
  visit(dstate, b, h, false, [&](const fw::detail::Leaf& leaf, const Place& place) {
    Array& d = gradients_.try_emplace(place.name, file_.like(place.name, 0)).first->second;
    for_each_entry(leaf, d, place, [](double ours, double& sum) { sum += ours; });
  });
}

// The layout says which arrays there must be: a path that the state does not have fails here.
void States::compare_gradients(const std::string& kind) {
  for (const auto& [path, kept] : layout_.state)
    if (file_.has(kept.initial)) file_.gradient(kind + kept.initial, gradients_.at(kept.initial));
  for (const auto& [path, name] : layout_.slow) file_.gradient(kind + name, gradients_.at(name));
  gradients_.clear();
}

void States::compare_final() {
  for (const auto& [path, kept] : layout_.state) {
    if (!file_.has(kept.final)) continue;
    Array& final = finals_.at(kept.final);
    if (kept.softmax)
      for (Index i = 0; i < final.columns().cols(); ++i)
        fw::detail::softmax_in_place(final.columns().col(i));
    file_.forward(kept.final, final);
  }
}

}  // namespace reference
