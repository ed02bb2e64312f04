// Running a function object over a grid.
//
// A kernel is a struct of plain data (pointers, sizes) with `BF_INLINE void operator()(uint32_t item) const`, or, for
// groups of lanes, `operator()(const Group &, uint32_t item, bool stores) const`. On the device it runs in a grid, on the
// host in a loop. The arithmetic is elsewhere; kernels load, call and store.
#pragma once

#include "lanes.cuh"

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#endif

namespace blindfold {

#if defined(__CUDACC__)
using Stream = cudaStream_t;

template <class Kernel> __global__ void __launch_bounds__(BLOCK_THREADS) run_items(Kernel kernel, uint32_t items) {
    uint32_t item = blockIdx.x * blockDim.x + threadIdx.x;
    if (item < items) kernel(item);
}

// Blocks of groups that a multiprocessor holds at least. Two leave 255 registers to a thread. Three would leave 168, which
// products over six lanes fit in, but at the price of an eighth more instructions (a quarter in products with lines):
// ptxas then keeps carry flags in bits of registers. On an H200 everything took a tenth to a third longer so.
constexpr uint32_t GROUP_BLOCKS = 2;

template <class Kernel> __global__ void __launch_bounds__(BLOCK_THREADS, GROUP_BLOCKS) run_groups(Kernel kernel, uint32_t items) {
#if BF_ON_DEVICE
    uint32_t warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    // Nothing to do: and to repeat an item of another warp would be to read what that warp writes.
    if (warp * WARP_GROUPS >= items) return;
    int lane = int(threadIdx.x % 32);
    bool idle = lane >= WARP_GROUPS * GROUP_LANES;
    int place = idle ? WARP_GROUPS - 1 : lane / GROUP_LANES;
    Group group;
    group.first = place * GROUP_LANES;
    group.mine = lane % GROUP_LANES;
    uint32_t item = warp * WARP_GROUPS + place;
    // Lanes beyond the last item repeat it, so that every lane takes part in every exchange.
    bool stores = !idle && item < items;
    kernel(group, item < items ? item : items - 1, stores);
#endif
}
#else
struct HostStream {};
using Stream = HostStream;
#endif

// One thread for each item. Returns 0, or the error of the launch.
template <class Kernel> int launch(Stream stream, const Kernel &kernel, uint32_t items) {
    if (items == 0) return 0;
#if defined(__CUDACC__)
    run_items<<<(items + BLOCK_THREADS - 1) / BLOCK_THREADS, BLOCK_THREADS, 0, stream>>>(kernel, items);
    return int(cudaGetLastError());
#else
    (void)stream;
    for (uint32_t item = 0; item < items; ++item) kernel(item);
    return 0;
#endif
}

// One group of six lanes for each item. Returns 0, or the error of the launch.
template <class Kernel> int launch_groups(Stream stream, const Kernel &kernel, uint32_t items) {
    if (items == 0) return 0;
#if defined(__CUDACC__)
    constexpr uint32_t block_items = BLOCK_THREADS / 32 * WARP_GROUPS;
    run_groups<<<(items + block_items - 1) / block_items, BLOCK_THREADS, 0, stream>>>(kernel, items);
    return int(cudaGetLastError());
#else
    (void)stream;
    for (uint32_t item = 0; item < items; ++item) kernel(Group{}, item, true);
    return 0;
#endif
}

} // namespace blindfold
