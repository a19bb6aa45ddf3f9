// Mapped files that others may cut or change: a read beyond their end must not end the process.
#pragma once
#include <cstddef>

namespace rankbits {

enum class FileChange { none = 0, unknown = 1, written = 2, cut = 3, failed = 4 };

// Watches n bytes from a page boundary on, mapped from an open file; the file (-1 if unknown) belongs to the watch from here on.
// From now on a page that the file has lost reads as zeros, as does the rest of the mapping, and the watch remembers it.
int watch_mapping(const void* start, size_t n_bytes, int file);

// What happened to the file since it was watched. "unknown": its last write was so short a time before the watch began that another
// one may bear the same time. "failed": the storage does not say.
FileChange look_at_mapping(int watch);

// Takes a file of which this is unknown for the one that is watched.
void accept_mapping(int watch);

void release_mapping(int watch);

}  // namespace rankbits
