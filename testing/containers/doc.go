// Package containers holds docker/ together: compose files, images, Prometheus's targets and the Helm chart say the same.
// What settings files say is checked by testing/e2e/tests/containers.rs, and that all of it runs by scripts/containers --smoke.
package containers
