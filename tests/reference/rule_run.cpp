#include "rule_run.hpp"

namespace reference {

Inputs::Inputs(Case& file, const Layout& layout, const std::set<std::string_view>& members)
    : file_(file), layout_(layout), members_(members) {
  for (const auto member : members) {
    const std::string& name = layout.inputs.at(member);
    Array array = file[name];
    given_[name] = array;
    if (layout.logarithms.contains(member)) array.flat() = array.flat().array().exp();
    if (member == "query" || member == "key")
      if (layout.normalise >= 0) {
        auto columns = array.columns();
        columns.array().rowwise() /=
            (columns.colwise().squaredNorm().array() + layout.normalise).sqrt();
      }
    if (member == "query" && layout.scales_query) array.flat() *= scale(array);
    arrays_[name] = array;
  }
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
    const std::string& name = layout_.inputs.at(member);
    if (!done.insert(name).second) continue;
    Array d = gradients.of(member), given = given_.at(name), ours = of(member);
    if (member == "query" && layout_.scales_query) d.flat() *= scale(d);
    if ((member == "query" || member == "key") && layout_.normalise >= 0) {
      const auto x = given.columns();
      auto dx = d.columns();
      for (Index i = 0; i < x.cols(); ++i) {
        const double square = x.col(i).squaredNorm() + layout_.normalise;
        const double along = x.col(i).dot(dx.col(i)) / square;
        dx.col(i) = (dx.col(i) - along * x.col(i)) / std::sqrt(square);
      }
    }
    if (layout_.logarithms.contains(member)) d.flat().array() *= ours.flat().array();
    file_.gradient(kind + name, d);
  }
}

namespace {

// Calls f(entries of the leaf in the order of the file, path) for every leaf.
template <class F> void for_each_leaf(const fw::detail::Object& state, const F& f) {
  fw::detail::visit_leaves(
      &state, 1, [&](const fw::detail::Leaf* leaf, const auto& path) { f(*leaf, path.text()); });
}

// The entries of head h of sequence b. `index` maps the order of a file to that of the leaf.
template <class F>
void for_each_entry(const fw::detail::Leaf& leaf, Array& array, Index part, bool key_major,
                    const F& f) {
  auto* const entries = static_cast<double*>(leaf.data);
  for (Index i = 0; i < leaf.size(); ++i)
    f(entries[key_major ? i : leaf.from_row_major(i)], *array.at(part * leaf.size() + i));
}

}  // namespace

void States::load_initial(const fw::detail::Object& state, Index b, Index h) {
  for_each_leaf(state, [&](const fw::detail::Leaf& leaf, const std::string& path) {
    const auto copy = [&](const std::string& name, Index part, bool key_major) {
      Array array = file_[name];
      for_each_entry(leaf, array, part, key_major,
                     [](double& ours, double theirs) { ours = theirs; });
    };
    if (const auto kept = layout_.state.find(path);
        kept != layout_.state.end() && file_.has(kept->second.initial))
      copy(kept->second.initial, b * heads_ + h, kept->second.key_major);
    if (const auto slow = layout_.slow.find(path); slow != layout_.slow.end())
      copy(slow->second, h, true);
  });
}

void States::load_gradient(const fw::detail::Object& dstate, Index b, Index h) {
  for_each_leaf(dstate, [&](const fw::detail::Leaf& leaf, const std::string& path) {
    const auto kept = layout_.state.find(path);
    if (kept == layout_.state.end() || !file_.has("up_" + kept->second.final)) return;
    Array up = file_["up_" + kept->second.final];
    for_each_entry(leaf, up, b * heads_ + h, kept->second.key_major,
                   [](double& ours, double theirs) { ours = theirs; });
  });
}

void States::keep_final(const fw::detail::Object& state, Index b, Index h) {
  for_each_leaf(state, [&](const fw::detail::Leaf& leaf, const std::string& path) {
    const auto kept = layout_.state.find(path);
    if (kept == layout_.state.end() || !file_.has(kept->second.final)) return;
    Array& final =
        finals_.try_emplace(kept->second.final, file_.like(kept->second.final)).first->second;
    for_each_entry(leaf, final, b * heads_ + h, kept->second.key_major,
                   [](double ours, double& kept_entry) { kept_entry = ours; });
  });
}

void States::keep_gradient(const fw::detail::Object& dstate, Index b, Index h) {
  for_each_leaf(dstate, [&](const fw::detail::Leaf& leaf, const std::string& path) {
    const auto add = [&](const std::string& name, Index part, bool key_major) {
      Array& d = gradients_.try_emplace(name, file_.like(name, 0)).first->second;
      for_each_entry(leaf, d, part, key_major, [](double ours, double& sum) { sum += ours; });
    };
    if (const auto kept = layout_.state.find(path);
        kept != layout_.state.end() && file_.has(kept->second.initial))
      add(kept->second.initial, b * heads_ + h, kept->second.key_major);
    if (const auto slow = layout_.slow.find(path); slow != layout_.slow.end())
      add(slow->second, h, true);
  });
}

void States::compare_gradients(const std::string& kind) {
  for (const auto& [name, d] : gradients_) file_.gradient(kind + name, d);
  gradients_.clear();
}

void States::compare_final() {
  for (const auto& [name, final] : finals_) file_.forward(name, final);
}

}  // namespace reference
