// error: only 1 name
#include "example.hpp"

struct Record {
  int a, b;
  static constexpr auto names = fw::names("a");
};
void test(Record& r) { fw::members(r); }
