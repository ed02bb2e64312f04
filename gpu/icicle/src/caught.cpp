// ICICLE's C functions, with exceptions made into a code and words: some throw (a device without the operation, a thread
// without a device), and an exception that reaches Rust ends the process.
//
// Its error codes come back as plain numbers. The enumeration of its Rust crates lacks two of them, so that its own
// wrappers must not be handed one of those (a licence that does not hold is one).
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>

// As ICICLE exports them; its references are pointers and its error enumeration is an int.
extern "C" {
int icicle_load_backend(const char* path, bool recursive);
int icicle_load_backend_from_env_or_default();
int icicle_is_device_available(const void* device);
int icicle_get_registered_devices(char* names, size_t room);
int icicle_set_device(const void* device);
int bls12_381_affine_convert_montgomery(
    const void* points, uint64_t count, bool into, const void* config, void* out);
int bls12_381_msm(const void* scalars, const void* points, int count, const void* config, void* out);
void bls12_381_to_affine(const void* point, void* out);
}

namespace {

// Not a code of ICICLE.
constexpr int THROWN = -1;

template <typename Call>
int caught(char* words, size_t room, Call call) noexcept {
    if (room > 0) words[0] = 0;
    try {
        return call();
    } catch (const std::exception& thrown) {
        std::snprintf(words, room, "%s", thrown.what());
    } catch (...) {
        std::snprintf(words, room, "an exception without words");
    }
    return THROWN;
}

}  // namespace

extern "C" {

int blindfold_icicle_load(const char* folder, char* words, size_t room) {
    return caught(words, room, [&] {
        return folder ? icicle_load_backend(folder, true) : icicle_load_backend_from_env_or_default();
    });
}

int blindfold_icicle_available(const void* device, char* words, size_t room) {
    return caught(words, room, [&] { return icicle_is_device_available(device); });
}

int blindfold_icicle_registered(char* names, size_t names_room, char* words, size_t room) {
    return caught(words, room, [&] { return icicle_get_registered_devices(names, names_room); });
}

int blindfold_icicle_select(const void* device, char* words, size_t room) {
    return caught(words, room, [&] { return icicle_set_device(device); });
}

int blindfold_icicle_convert(
    void* points, uint64_t count, bool into, const void* config, char* words, size_t room) {
    return caught(words, room, [&] {
        return bls12_381_affine_convert_montgomery(points, count, into, config, points);
    });
}

int blindfold_icicle_msm(
    const void* scalars, const void* points, int count, const void* config, void* out, char* words, size_t room) {
    return caught(words, room, [&] { return bls12_381_msm(scalars, points, count, config, out); });
}

int blindfold_icicle_to_affine(const void* point, void* out, char* words, size_t room) {
    return caught(words, room, [&] {
        bls12_381_to_affine(point, out);
        return 0;
    });
}
}
