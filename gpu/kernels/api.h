/* What the host calls. Every function but the two that say otherwise returns 0 or an error of the CUDA runtime's
 * numbering; an error may be that of work queued earlier. Nothing here keeps a pointer to the caller's memory past the
 * next `blindfold_queue_wait`, frees what it did not allocate, or calls back.
 *
 * Work on a queue is done in order, behind the caller's back; its pointers stay valid and its results untouched until
 * `blindfold_queue_wait` has returned. Pointers named `device_…` are of `blindfold_allocate` on the queue's device.
 * Numbers are laid out as blindfold_bte::accelerator says. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct blindfold_device {
    char name[256];
    uint64_t total_bytes;
    uint64_t free_bytes;
    int32_t major, minor; /* compute capability; 0.0 is the emulation */
    int32_t processors;
};

struct blindfold_queue;
struct blindfold_event;

/* The words for an error, for as long as the process lives. */
const char *blindfold_error_text(int32_t code);

int32_t blindfold_device_count(int32_t *out);
int32_t blindfold_device_describe(int32_t device, struct blindfold_device *out);

int32_t blindfold_allocate(int32_t device, uint64_t bytes, void **out);
int32_t blindfold_free(int32_t device, void *device_memory);
/* Memory of the host that the device copies from and to by itself. */
int32_t blindfold_allocate_pinned(int32_t device, uint64_t bytes, void **out);
int32_t blindfold_free_pinned(int32_t device, void *memory);

/* Work of an urgent queue overtakes that of the others. */
int32_t blindfold_queue_open(int32_t device, int32_t urgent, struct blindfold_queue **out);
/* Waits first. */
int32_t blindfold_queue_close(struct blindfold_queue *queue);
int32_t blindfold_queue_wait(struct blindfold_queue *queue);

int32_t blindfold_upload(struct blindfold_queue *queue, void *device_to, const void *from, uint64_t bytes);
int32_t blindfold_download(struct blindfold_queue *queue, void *to, const void *device_from, uint64_t bytes);

int32_t blindfold_event_open(int32_t device, struct blindfold_event **out);
int32_t blindfold_event_close(int32_t device, struct blindfold_event *event);
/* The moment at which the queue gets here. */
int32_t blindfold_event_record(struct blindfold_queue *queue, struct blindfold_event *event);
/* Between two events whose queue has been waited for. */
int32_t blindfold_event_elapsed_ms(const struct blindfold_event *from, const struct blindfold_event *to, float *out);

/* The lines of `count` points of G2, 68 a point. */
int32_t blindfold_prepare_lines(struct blindfold_queue *queue, const void *device_points, void *device_lines, uint32_t count);

/* Folds `count` inputs and a release, null if there is none, to the inputs of the transforms, homogeneous points. */
int32_t blindfold_fold_points(struct blindfold_queue *queue, uint32_t log_size, uint32_t cosets, const void *device_inputs,
                              uint32_t count, const void *device_release, void *device_points);
/* One level of the forward transforms, blocks of 2·half; with a point in each group of lanes, for few points, or in each
 * thread. */
int32_t blindfold_transform_points(struct blindfold_queue *queue, uint32_t log_size, uint32_t cosets, uint32_t half,
                                   const int8_t *device_digits, uint32_t positions, int32_t odd, int32_t in_lanes,
                                   void *device_points);

/* Pairings of homogeneous points, `point_step` apart (0: all the same), with the points of these lines, up to the hard
 * part. `device_denominators` and `device_scratch` have `count` elements of F_p. */
int32_t blindfold_pair(struct blindfold_queue *queue, const void *device_points, uint32_t point_step,
                       const void *device_lines, uint32_t count, void *device_elements, void *device_denominators,
                       void *device_scratch);
/* z_i from the pairings of one homogeneous point with the points of these lines and the cross-terms. */
int32_t blindfold_blind(struct blindfold_queue *queue, const void *device_point, const void *device_lines, uint32_t count,
                        const void *device_cross, void *device_numerators, void *device_denominators,
                        void *device_scratch, void *device_blindings);
/* The hard part, in place, of the elements or of their conjugates. */
int32_t blindfold_hard_parts(struct blindfold_queue *queue, void *device_elements, int32_t conjugates, uint32_t count);

/* Raises elements to powers, in place: `count` jobs of an element's and an exponent's number. `device_factors` is null, or
 * has room for 4·count elements: then the digits of an exponent are walked apart, for small counts. */
int32_t blindfold_raise(struct blindfold_queue *queue, void *device_elements, const uint32_t *device_jobs, uint32_t count,
                        const uint32_t *device_codes, uint32_t positions, uint32_t entries, int32_t odd,
                        void *device_factors);
/* Transforms back of length 2, `count` of them, and of length 4·quarter after their twiddles. */
int32_t blindfold_butterflies(struct blindfold_queue *queue, void *device_elements, const uint32_t *device_starts,
                              uint32_t count);
int32_t blindfold_combine(struct blindfold_queue *queue, void *device_elements, const uint32_t *device_starts,
                          uint32_t count, uint32_t quarter, int32_t frobenius_is_fourth_root);
/* The first `count` outputs from all cosets. */
int32_t blindfold_unfold(struct blindfold_queue *queue, const void *device_elements, uint32_t size, uint32_t cosets,
                         void *device_outputs, uint32_t count);

/* Elements of a table of powers; filling one; powers by it, four digits of windows for each exponent. */
uint32_t blindfold_comb_entries(uint32_t window_bits);
int32_t blindfold_fill_comb(struct blindfold_queue *queue, void *device_entries, uint32_t window_bits,
                            const void *device_base);
int32_t blindfold_comb_powers(struct blindfold_queue *queue, void *device_entries, uint32_t window_bits,
                              const int32_t *device_codes, void *device_powers, uint32_t count);

/* The workspace that a sum of 1 to 2^26 − 1 points takes, and the sum, an affine point. */
uint64_t blindfold_sum_bytes(uint32_t count);
int32_t blindfold_sum(struct blindfold_queue *queue, const void *device_points, const void *device_scalars, uint32_t count,
                      void *device_workspace, void *device_out);

#ifdef __cplusplus
}
#endif
