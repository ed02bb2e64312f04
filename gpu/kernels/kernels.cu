// Every kernel of the library, compiled for a device. `scripts/gpu-compile` reads from it what each one takes.
#include "curve/affine.cuh"
#include "curve/lines.cuh"
#include "machine/launch.cuh"
#include "msm/msm.cuh"
#include "transform/points.cuh"

#define BF_ITEM_KERNEL(name) template __global__ void blindfold::run_items(blindfold::name, uint32_t);

BF_ITEM_KERNEL(transform::Fold)
BF_ITEM_KERNEL(transform::PointLevel)
BF_ITEM_KERNEL(g1::Normalise)
BF_ITEM_KERNEL(lines::Prepare)
BF_ITEM_KERNEL(msm::ClearCounts)
BF_ITEM_KERNEL(msm::Count)
BF_ITEM_KERNEL(msm::SumChunks)
BF_ITEM_KERNEL(msm::ScanChunks)
BF_ITEM_KERNEL(msm::Begin)
BF_ITEM_KERNEL(msm::Place)
BF_ITEM_KERNEL(msm::ClearPoints)
BF_ITEM_KERNEL(msm::AddShares<blindfold::msm::AffineEntries>)
BF_ITEM_KERNEL(msm::AddShares<blindfold::msm::PartialSums>)
BF_ITEM_KERNEL(msm::SumStretches)
BF_ITEM_KERNEL(msm::HalveRows)
BF_ITEM_KERNEL(msm::JoinWindows)
BF_ITEM_KERNEL(msm::Recode)
BF_ITEM_KERNEL(msm::Products)
