// What the tests of the Miller lines call.
#include "../machine/launch.cuh"
#include "../curve/lines.cuh"

using namespace blindfold;

extern "C" void blindfold_test_lines_prepare(const G2Affine *points, Line *out, uint32_t count) {
    launch(Stream(), lines::Prepare{points, out}, count);
}
