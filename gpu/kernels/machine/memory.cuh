// Devices, their memory, streams and events: the CUDA runtime's on a device build; in the emulation one device whose
// memory is this process's and whose streams are done at once.
//
// Functions return 0 or an error of the runtime's numbering. The calls act on the device that `select` chose for this
// thread.
#pragma once

#include "launch.cuh"

#if !defined(__CUDACC__)
#include <cstdlib>
#include <cstring>
#include <ctime>
#endif

namespace blindfold {
namespace memory {

// What is to be known of a device before it is used.
struct Device {
    char name[256];
    uint64_t total_bytes;
    uint64_t free_bytes;
    int32_t major, minor; // compute capability
    int32_t processors;
};

#if defined(__CUDACC__)

using Event = cudaEvent_t;

inline const char *text(int code) { return cudaGetErrorString(cudaError_t(code)); }
inline int count(int *out) { return int(cudaGetDeviceCount(out)); }
inline int select(int device) { return int(cudaSetDevice(device)); }

// Of the selected device.
inline int describe(int device, Device *out) {
    cudaDeviceProp properties;
    if (cudaError_t error = cudaGetDeviceProperties(&properties, device)) return int(error);
    for (size_t i = 0; i < sizeof out->name; ++i) out->name[i] = properties.name[i];
    out->major = properties.major;
    out->minor = properties.minor;
    out->processors = properties.multiProcessorCount;
    size_t free = 0, total = 0;
    if (cudaError_t error = cudaMemGetInfo(&free, &total)) return int(error);
    out->free_bytes = free;
    out->total_bytes = total;
    return 0;
}

inline int allocate(void **out, size_t bytes) { return int(cudaMalloc(out, bytes)); }
inline int release(void *at) { return int(cudaFree(at)); }
inline int allocate_pinned(void **out, size_t bytes) { return int(cudaMallocHost(out, bytes)); }
inline int release_pinned(void *at) { return int(cudaFreeHost(at)); }

inline int upload(Stream stream, void *to, const void *from, size_t bytes) {
    return int(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream));
}

inline int download(Stream stream, void *to, const void *from, size_t bytes) {
    return int(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream));
}

// Work of an urgent stream overtakes that of others.
inline int open(Stream *out, bool urgent) {
    int least = 0, greatest = 0;
    if (cudaError_t error = cudaDeviceGetStreamPriorityRange(&least, &greatest)) return int(error);
    return int(cudaStreamCreateWithPriority(out, cudaStreamNonBlocking, urgent ? greatest : least));
}

inline int close(Stream stream) { return int(cudaStreamDestroy(stream)); }
inline int wait(Stream stream) { return int(cudaStreamSynchronize(stream)); }
inline int open(Event *out) { return int(cudaEventCreate(out)); }
inline int close(Event event) { return int(cudaEventDestroy(event)); }
inline int record(Stream stream, Event *event) { return int(cudaEventRecord(*event, stream)); }
inline int elapsed_ms(const Event &from, const Event &to, float *out) {
    return int(cudaEventElapsedTime(out, from, to));
}

#else

// Nanoseconds of the machine's clock.
struct Event {
    uint64_t at;
};

// The runtime's numbers for what can happen here, too.
constexpr int OUT_OF_MEMORY = 2;

inline const char *text(int code) { return code == OUT_OF_MEMORY ? "out of memory" : "unknown error"; }

inline int count(int *out) {
    *out = 1;
    return 0;
}

inline int select(int) { return 0; }

inline int describe(int, Device *out) {
    *out = Device{"emulated", uint64_t(1) << 33, uint64_t(1) << 33, 0, 0, 1};
    return 0;
}

// Of the alignment that devices give.
inline int allocate(void **out, size_t bytes) {
    return posix_memalign(out, 256, bytes) == 0 ? 0 : OUT_OF_MEMORY;
}

inline int release(void *at) {
    free(at);
    return 0;
}

inline int allocate_pinned(void **out, size_t bytes) { return allocate(out, bytes); }
inline int release_pinned(void *at) { return release(at); }

inline int upload(Stream, void *to, const void *from, size_t bytes) {
    memcpy(to, from, bytes);
    return 0;
}

inline int download(Stream stream, void *to, const void *from, size_t bytes) { return upload(stream, to, from, bytes); }

inline int open(Stream *, bool) { return 0; }
inline int close(Stream) { return 0; }
inline int wait(Stream) { return 0; }
inline int open(Event *) { return 0; }
inline int close(Event) { return 0; }

inline int record(Stream, Event *event) {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    event->at = uint64_t(now.tv_sec) * 1000000000u + uint64_t(now.tv_nsec);
    return 0;
}

inline int elapsed_ms(const Event &from, const Event &to, float *out) {
    *out = float(to.at - from.at) / 1e6f;
    return 0;
}

#endif

} // namespace memory
} // namespace blindfold
