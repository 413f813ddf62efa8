#pragma once

/// The number of allocations of the process so far, by any function and in any thread.
long allocations();
