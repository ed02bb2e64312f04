// The functions of api.h: each selects its device, calls and passes on what it is told.
#include "api.h"

#include <cstdlib>

#include "curve/affine.cuh"
#include "field/batch_inverse.cuh"
#include "gt/comb.cuh"
#include "gt/transform.cuh"
#include "machine/memory.cuh"
#include "msm/msm.cuh"
#include "pairing/kernels.cuh"
#include "transform/points.cuh"

using namespace blindfold;

struct blindfold_queue {
    int device;
    Stream stream;
};

struct blindfold_event {
    memory::Event event;
};

namespace {

// The runtime's number for a lack of memory, the host's here.
constexpr int32_t HOST_MEMORY = 2;

template <class T> int32_t make(T **out) {
    *out = static_cast<T *>(calloc(1, sizeof(T)));
    return *out == nullptr ? HOST_MEMORY : 0;
}

// Elements that share an inversion.
constexpr uint32_t INVERTED_TOGETHER = 16;

int invert(Stream stream, Fp *elements, Fp *scratch, uint32_t count) {
    uint32_t threads = InvertAll::threads_for(count, INVERTED_TOGETHER);
    return launch(stream, InvertAll{elements, scratch, count, threads}, threads);
}

} // namespace

static_assert(sizeof(blindfold_device) == sizeof(memory::Device), "one layout");

extern "C" {

const char *blindfold_error_text(int32_t code) { return memory::text(code); }

int32_t blindfold_device_count(int32_t *out) {
    int count = 0;
    int32_t error = memory::count(&count);
    *out = error ? 0 : count;
    return error;
}

int32_t blindfold_device_describe(int32_t device, blindfold_device *out) {
    if (int32_t error = memory::select(device)) return error;
    return memory::describe(device, reinterpret_cast<memory::Device *>(out));
}

int32_t blindfold_allocate(int32_t device, uint64_t bytes, void **out) {
    if (int32_t error = memory::select(device)) return error;
    return memory::allocate(out, bytes);
}

int32_t blindfold_free(int32_t device, void *device_memory) {
    if (int32_t error = memory::select(device)) return error;
    return memory::release(device_memory);
}

int32_t blindfold_allocate_pinned(int32_t device, uint64_t bytes, void **out) {
    if (int32_t error = memory::select(device)) return error;
    return memory::allocate_pinned(out, bytes);
}

int32_t blindfold_free_pinned(int32_t device, void *memory) {
    if (int32_t error = memory::select(device)) return error;
    return memory::release_pinned(memory);
}

int32_t blindfold_queue_open(int32_t device, int32_t urgent, blindfold_queue **out) {
    if (int32_t error = memory::select(device)) return error;
    if (int32_t error = make(out)) return error;
    (*out)->device = device;
    int32_t error = memory::open(&(*out)->stream, urgent != 0);
    if (error) free(*out);
    return error;
}

int32_t blindfold_queue_close(blindfold_queue *queue) {
    int32_t failed = blindfold_queue_wait(queue);
    int32_t error = memory::close(queue->stream);
    free(queue);
    return failed ? failed : error;
}

int32_t blindfold_queue_wait(blindfold_queue *queue) {
    if (int32_t error = memory::select(queue->device)) return error;
    return memory::wait(queue->stream);
}

int32_t blindfold_upload(blindfold_queue *queue, void *device_to, const void *from, uint64_t bytes) {
    if (int32_t error = memory::select(queue->device)) return error;
    return memory::upload(queue->stream, device_to, from, bytes);
}

int32_t blindfold_download(blindfold_queue *queue, void *to, const void *device_from, uint64_t bytes) {
    if (int32_t error = memory::select(queue->device)) return error;
    return memory::download(queue->stream, to, device_from, bytes);
}

int32_t blindfold_event_open(int32_t device, blindfold_event **out) {
    if (int32_t error = memory::select(device)) return error;
    if (int32_t error = make(out)) return error;
    int32_t error = memory::open(&(*out)->event);
    if (error) free(*out);
    return error;
}

int32_t blindfold_event_close(int32_t device, blindfold_event *event) {
    int32_t error = memory::select(device);
    if (!error) error = memory::close(event->event);
    free(event);
    return error;
}

int32_t blindfold_event_record(blindfold_queue *queue, blindfold_event *event) {
    if (int32_t error = memory::select(queue->device)) return error;
    return memory::record(queue->stream, &event->event);
}

int32_t blindfold_event_elapsed_ms(const blindfold_event *from, const blindfold_event *to, float *out) {
    return memory::elapsed_ms(from->event, to->event, out);
}

int32_t blindfold_prepare_lines(blindfold_queue *queue, const void *device_points, void *device_lines, uint32_t count) {
    if (int32_t error = memory::select(queue->device)) return error;
    const G2Affine *points = static_cast<const G2Affine *>(device_points);
    return launch(queue->stream, lines::Prepare{points, static_cast<Line *>(device_lines)}, count);
}

int32_t blindfold_fold_points(blindfold_queue *queue, uint32_t log_size, uint32_t cosets, const void *device_inputs,
                              uint32_t count, const void *device_release, void *device_points) {
    if (int32_t error = memory::select(queue->device)) return error;
    transform::Shape shape{log_size, cosets};
    transform::Fold fold{shape, static_cast<const G1Affine *>(device_inputs), count,
                         static_cast<const G1Affine *>(device_release), static_cast<G1 *>(device_points)};
    return launch(queue->stream, fold, shape.points());
}

int32_t blindfold_transform_points(blindfold_queue *queue, uint32_t log_size, uint32_t cosets, uint32_t half,
                                   const int8_t *device_digits, uint32_t positions, int32_t odd, int32_t in_lanes,
                                   void *device_points) {
    if (int32_t error = memory::select(queue->device)) return error;
    transform::Shape shape{log_size, cosets};
    g1::Digits roots{device_digits, positions, odd != 0};
    G1 *points = static_cast<G1 *>(device_points);
    uint32_t items = shape.points() / 2;
    if (in_lanes) return launch_groups(queue->stream, transform::PointLevelInLanes{shape, half, roots, points}, items);
    return launch(queue->stream, transform::PointLevel{shape, half, roots, points}, items);
}

int32_t blindfold_pair(blindfold_queue *queue, const void *device_points, uint32_t point_step, const void *device_lines,
                       uint32_t count, void *device_elements, void *device_denominators, void *device_scratch) {
    if (int32_t error = memory::select(queue->device)) return error;
    Fp2 *elements = static_cast<Fp2 *>(device_elements);
    Fp *denominators = static_cast<Fp *>(device_denominators);
    MillerLoops loops{static_cast<const Fp *>(device_points), point_step, static_cast<const Line *>(device_lines), 0, 1,
                      elements, denominators};
    if (int32_t error = launch_groups(queue->stream, loops, count)) return error;
    if (int32_t error = invert(queue->stream, denominators, static_cast<Fp *>(device_scratch), count)) return error;
    return launch(queue->stream, Divide{elements, denominators}, count * gt::COEFFICIENTS);
}

int32_t blindfold_blind(blindfold_queue *queue, const void *device_point, const void *device_lines, uint32_t count,
                        const void *device_cross, void *device_numerators, void *device_denominators,
                        void *device_scratch, void *device_blindings) {
    if (int32_t error = memory::select(queue->device)) return error;
    Fp2 *numerators = static_cast<Fp2 *>(device_numerators);
    Fp *denominators = static_cast<Fp *>(device_denominators);
    MillerLoops loops{static_cast<const Fp *>(device_point), 0, static_cast<const Line *>(device_lines), 0, 1, numerators,
                      denominators};
    if (int32_t error = launch_groups(queue->stream, loops, count)) return error;
    if (int32_t error = invert(queue->stream, denominators, static_cast<Fp *>(device_scratch), count)) return error;
    Blindings blindings{numerators, denominators, static_cast<const Fp2 *>(device_cross),
                        static_cast<Fp2 *>(device_blindings)};
    return launch_groups(queue->stream, blindings, count);
}

int32_t blindfold_hard_parts(blindfold_queue *queue, void *device_elements, int32_t conjugates, uint32_t count) {
    if (int32_t error = memory::select(queue->device)) return error;
    return launch_groups(queue->stream, HardParts{static_cast<Fp2 *>(device_elements), conjugates != 0}, count);
}

int32_t blindfold_raise(blindfold_queue *queue, void *device_elements, const uint32_t *device_jobs, uint32_t count,
                        const uint32_t *device_codes, uint32_t positions, uint32_t entries, int32_t odd,
                        void *device_factors) {
    if (int32_t error = memory::select(queue->device)) return error;
    Exponents exponents{device_codes, positions, entries, odd != 0};
    Fp2 *elements = static_cast<Fp2 *>(device_elements), *factors = static_cast<Fp2 *>(device_factors);
    if (factors == nullptr) return launch_groups(queue->stream, Powers{elements, device_jobs, exponents}, count);
    DigitPowers digits{elements, device_jobs, count, exponents, factors};
    if (int32_t error = launch_groups(queue->stream, digits, gt::DIGITS * count)) return error;
    return launch_groups(queue->stream, JoinPowers{elements, device_jobs, count, factors}, count);
}

int32_t blindfold_butterflies(blindfold_queue *queue, void *device_elements, const uint32_t *device_starts,
                              uint32_t count) {
    if (int32_t error = memory::select(queue->device)) return error;
    return launch_groups(queue->stream, Butterflies{static_cast<Fp2 *>(device_elements), device_starts}, count);
}

int32_t blindfold_combine(blindfold_queue *queue, void *device_elements, const uint32_t *device_starts, uint32_t count,
                          uint32_t quarter, int32_t frobenius_is_fourth_root) {
    if (int32_t error = memory::select(queue->device)) return error;
    Combine combine{static_cast<Fp2 *>(device_elements), device_starts, quarter, frobenius_is_fourth_root != 0};
    return launch_groups(queue->stream, combine, count * quarter);
}

int32_t blindfold_unfold(blindfold_queue *queue, const void *device_elements, uint32_t size, uint32_t cosets,
                         void *device_outputs, uint32_t count) {
    if (int32_t error = memory::select(queue->device)) return error;
    Unfold unfold{static_cast<const Fp2 *>(device_elements), size, cosets, static_cast<Fp2 *>(device_outputs)};
    return launch_groups(queue->stream, unfold, count);
}

uint32_t blindfold_comb_entries(uint32_t window_bits) { return Comb{nullptr, window_bits}.size(); }

int32_t blindfold_fill_comb(blindfold_queue *queue, void *device_entries, uint32_t window_bits, const void *device_base) {
    if (int32_t error = memory::select(queue->device)) return error;
    Comb comb{static_cast<Fp2 *>(device_entries), window_bits};
    return fill_comb(queue->stream, comb, static_cast<const Fp2 *>(device_base));
}

int32_t blindfold_comb_powers(blindfold_queue *queue, void *device_entries, uint32_t window_bits,
                              const int32_t *device_codes, void *device_powers, uint32_t count) {
    if (int32_t error = memory::select(queue->device)) return error;
    Comb comb{static_cast<Fp2 *>(device_entries), window_bits};
    return launch_groups(queue->stream, CombPowers{comb, device_codes, static_cast<Fp2 *>(device_powers)}, count);
}

uint64_t blindfold_sum_bytes(uint32_t count) {
    return msm::workspace(msm::plan(count, true), nullptr).bytes + sizeof(G1);
}

int32_t blindfold_sum(blindfold_queue *queue, const void *device_points, const void *device_scalars, uint32_t count,
                      void *device_workspace, void *device_out) {
    if (int32_t error = memory::select(queue->device)) return error;
    msm::Plan plan = msm::plan(count, true);
    uint8_t *workspace = static_cast<uint8_t *>(device_workspace);
    // Workspaces end at a multiple of 256 bytes.
    G1 *sum = reinterpret_cast<G1 *>(workspace + msm::workspace(plan, nullptr).bytes);
    int32_t error = msm::run(queue->stream, plan, static_cast<const G1Affine *>(device_points),
                             static_cast<const uint32_t *>(device_scalars), workspace, sum);
    if (error) return error;
    return launch(queue->stream, g1::Normalise{sum, 1, 1, static_cast<G1Affine *>(device_out)}, 1);
}

} // extern "C"
