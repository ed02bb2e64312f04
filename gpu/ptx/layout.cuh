// What gpu/ptx/src/runtime.rs takes for granted of the CUDA runtime.
#pragma once

#include <cstddef>

#include <cuda_runtime.h>

static_assert(CUDART_VERSION >= 13000 && CUDART_VERSION < 14000, "the CUDA runtime of gpu/ptx is that of CUDA 13");
static_assert(sizeof(cudaDeviceProp) == 1008, "PROPERTIES_BYTES");
static_assert(offsetof(cudaDeviceProp, totalGlobalMem) == 288, "PROPERTIES_MEMORY");
static_assert(offsetof(cudaDeviceProp, major) == 360 && offsetof(cudaDeviceProp, minor) == 364, "PROPERTIES_MAJOR");
static_assert(offsetof(cudaDeviceProp, multiProcessorCount) == 384, "PROPERTIES_PROCESSORS");
