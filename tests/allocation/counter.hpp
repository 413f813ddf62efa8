#pragma once

/// How often the process has asked for memory so far, in any way and from any thread.
long allocations();
