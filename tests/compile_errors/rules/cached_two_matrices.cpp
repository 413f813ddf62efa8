// error: CachedSegments: the memory must be a rule of the kernels
#include <fastweights/memories/adaptors/cached_segments.hpp>
#include <fastweights/memories/rules/titans_memory.hpp>

fw::CachedSegments<fw::TitansMemory<float>> cached(fw::TitansMemory<float>({4, 4}), 2);
