package containers

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const docker = "../../docker"

type secretUse struct{ Source, Target string }

type service struct {
	Image           string
	Profiles        []string
	Restart         string
	ReadOnly        bool     `yaml:"read_only"`
	CapDrop         []string `yaml:"cap_drop"`
	SecurityOpt     []string `yaml:"security_opt"`
	PidsLimit       int      `yaml:"pids_limit"`
	StopGracePeriod string   `yaml:"stop_grace_period"`
	MemLimit        string   `yaml:"mem_limit"`
	CPUs            float64  `yaml:"cpus"`
	Logging         struct {
		Driver  string
		Options map[string]string
	}
	Environment map[string]string
	Tmpfs       []string
	Command     []string
	Volumes     []string
	Secrets     []secretUse
	Networks    []string
	Ports       []string
	Healthcheck struct{ Test []string }
	User        string
	Privileged  bool
	NetworkMode string                                `yaml:"network_mode"`
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
}

type composition struct {
	Services map[string]service
	Networks map[string]*struct{ Internal bool }
	Volumes  map[string]any
	Secrets  map[string]struct{ File string }
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// parse reads YAML; keys that begin with x- are anchors of compose files.
func parse(t *testing.T, name, text string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func compositions(t *testing.T) map[string]composition {
	t.Helper()
	paths, err := filepath.Glob(docker + "/compose*.yaml")
	if err != nil || len(paths) != 7 {
		t.Fatal(paths, err)
	}
	all := map[string]composition{}
	for _, path := range paths {
		var one composition
		parse(t, path, read(t, path), &one)
		all[filepath.Base(path)] = one
	}
	return all
}

var ourImage = regexp.MustCompile(`^\$\{BLINDFOLD_REGISTRY:-blindfold\}/([a-z0-9-]+):\$\{BLINDFOLD_TAG:-latest\}$`)

// imageOf gives the name of an image that a Dockerfile of ours makes.
func imageOf(s service) string {
	if match := ourImage.FindStringSubmatch(s.Image); match != nil {
		return match[1]
	}
	return ""
}

// directive gives what stands behind a Dockerfile's last instruction of this name, joined over continued lines.
func directive(dockerfile, name string) string {
	lines := strings.Split(strings.ReplaceAll(dockerfile, "\\\n", ""), "\n")
	for _, line := range slices.Backward(lines) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.Join(strings.Fields(rest), " ")
		}
	}
	return ""
}

func TestEveryContainerIsConfined(t *testing.T) {
	for file, composition := range compositions(t) {
		for name, s := range composition.Services {
			at := file + ": " + name
			if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
				t.Errorf("%s has more rights than it needs", at)
			}
			if s.Privileged || s.NetworkMode != "" || s.User != "" {
				t.Errorf("%s changes what its image says of rights", at)
			}
			if s.Restart != "unless-stopped" || s.PidsLimit == 0 || s.MemLimit == "" || s.CPUs == 0 {
				t.Errorf("%s: no restart or no limits", at)
			}
			if s.Logging.Driver != "json-file" || s.Logging.Options["max-size"] == "" || s.Logging.Options["max-file"] == "" {
				t.Errorf("%s: its log grows without end", at)
			}
			for key := range s.Environment {
				if upper := strings.ToUpper(key); regexp.MustCompile(`(PASSWORD|SECRET|KEY|TOKEN)$`).MatchString(upper) {
					t.Errorf("%s: a secret in the environment: %s", at, key)
				}
			}
			for _, port := range s.Ports {
				if !strings.HasPrefix(port, "${BLINDFOLD_BIND:-127.0.0.1}:") && !strings.HasPrefix(port, "127.0.0.1:") {
					t.Errorf("%s publishes %s everywhere", at, port)
				}
			}
		}
	}
}

func TestEveryImageIsMadeHere(t *testing.T) {
	used := map[string]bool{"binaries": true, "prebuilt": true, "cli": true}
	for file, composition := range compositions(t) {
		for name, s := range composition.Services {
			image := imageOf(s)
			if image == "" {
				// Grafana is in no registry that images are made from.
				if name != "grafana" || !slices.Equal(s.Profiles, []string{"grafana"}) {
					t.Errorf("%s: %s runs %s", file, name, s.Image)
				}
				continue
			}
			used[image] = true
			dockerfile := read(t, filepath.Join(docker, image+".Dockerfile"))
			exposed := strings.Fields(directive(dockerfile, "EXPOSE"))
			for _, port := range s.Ports {
				parts := strings.Split(port, ":")
				if inside := parts[len(parts)-1]; !slices.Contains(exposed, inside) {
					t.Errorf("%s: %s publishes %s, its image exposes %v", file, name, inside, exposed)
				}
			}
			// Readiness is asked for where the image asks whether the process runs.
			if test := s.Healthcheck.Test; len(test) > 0 {
				asked := strings.TrimSuffix(test[len(test)-1], "/readyz")
				if asked == test[len(test)-1] || !strings.Contains(directive(dockerfile, "HEALTHCHECK"), asked+"/healthz") {
					t.Errorf("%s: %s asks %v", file, name, test)
				}
			}
		}
	}
	paths, err := filepath.Glob(docker + "/*.Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if name := strings.TrimSuffix(filepath.Base(path), ".Dockerfile"); !used[name] {
			t.Errorf("nothing runs %s", path)
		}
	}
}

// What is declared is used, and the other way round; what is mounted from here exists.
func TestNothingIsDeclaredInVain(t *testing.T) {
	for file, composition := range compositions(t) {
		networks, volumes, secrets := map[string]bool{}, map[string]bool{}, map[string]bool{}
		for name, s := range composition.Services {
			for _, network := range s.Networks {
				networks[network] = true
			}
			for _, secret := range s.Secrets {
				secrets[secret.Source] = true
			}
			for _, volume := range s.Volumes {
				source := volume[:strings.LastIndex(strings.TrimSuffix(volume, ":ro"), ":")]
				switch {
				case strings.HasPrefix(source, "${BLINDFOLD_DEPLOYMENT:?}/"):
					settings := strings.ReplaceAll(strings.TrimPrefix(source, "${BLINDFOLD_DEPLOYMENT:?}/"), "${BLINDFOLD_MEMBER:?}", "1")
					if strings.HasPrefix(settings, "settings/") {
						read(t, filepath.Join(docker, settings))
					}
				case strings.HasPrefix(source, "."):
					if _, err := os.Stat(filepath.Join(docker, source)); err != nil {
						t.Errorf("%s: %s: %v", file, name, err)
					}
				default:
					volumes[source] = true
				}
			}
			for other := range s.DependsOn {
				if _, ok := composition.Services[other]; !ok {
					t.Errorf("%s: %s waits for %s", file, name, other)
				}
			}
		}
		if file == "compose.l1-dev.yaml" {
			continue // Its networks are those of compose.yaml.
		}
		compare(t, file+": volumes", keys(composition.Volumes), keys(volumes))
		compare(t, file+": secrets", keys(composition.Secrets), keys(secrets))
		declared := keys(composition.Networks)
		declared = slices.DeleteFunc(declared, func(name string) bool { return name == "default" })
		delete(networks, "default")
		compare(t, file+": networks", declared, keys(networks))
	}
}

// The parties' own files run what compose.yaml runs.
func TestAPartyAloneRunsTheSame(t *testing.T) {
	all := compositions(t)
	whole := all["compose.yaml"].Services
	for alone, inWhole := range map[string]string{"member": "member-1", "signer": "signer", "full-node": "full-node", "full-node-execution": "full-node-execution"} {
		file := "compose.full-node.yaml"
		if alone == "member" || alone == "signer" {
			file = "compose." + alone + ".yaml"
		}
		one, other := all[file].Services[alone], whole[inWhole]
		targets := func(s service) (targets []string) {
			for _, secret := range s.Secrets {
				targets = append(targets, secret.Target)
			}
			return targets
		}
		if one.Image != other.Image || one.MemLimit != other.MemLimit || one.CPUs != other.CPUs || one.StopGracePeriod != other.StopGracePeriod {
			t.Errorf("%s: image, limits or grace period differ from those of compose.yaml", alone)
		}
		compare(t, alone+": secrets", targets(one), targets(other))
		compare(t, alone+": health", one.Healthcheck.Test, other.Healthcheck.Test)
	}
}

type scrape struct {
	JobName       string                       `yaml:"job_name"`
	StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
}

type prometheus struct {
	ScrapeConfigs []scrape `yaml:"scrape_configs"`
}

func (p prometheus) targets() map[string][]string {
	all := map[string][]string{}
	for _, config := range p.ScrapeConfigs {
		for _, static := range config.StaticConfigs {
			all[config.JobName] = append(all[config.JobName], static.Targets...)
		}
	}
	return all
}

// Alarms and boards go by the jobs' names; and nothing that runs is forgotten.
func TestPrometheusAsksEveryRole(t *testing.T) {
	var theirs, ours prometheus
	parse(t, "observability", read(t, "../../observability/prometheus.yml"), &theirs)
	parse(t, "docker", read(t, docker+"/prometheus.yml"), &ours)
	known, asked := theirs.targets(), ours.targets()
	for job := range asked {
		if _, ok := known[job]; !ok {
			t.Errorf("no alarm knows the job %s", job)
		}
	}
	roles := map[string]string{"sequencer": "sequencer", "signer": "signer", "gateway": "gateway", "committee": "committee", "hint-publisher": "hint-publisher", "full-node": "full-node", "coprocessor": "coprocessor"}
	expected := map[string][]string{}
	for name, s := range compositions(t)["compose.yaml"].Services {
		role, ok := roles[imageOf(s)]
		if !ok {
			continue
		}
		ports := strings.Fields(directive(read(t, filepath.Join(docker, role+".Dockerfile")), "EXPOSE"))
		target := name + ":" + ports[len(ports)-1]
		expected["blindfold-"+role] = append(expected["blindfold-"+role], target)
		expected["blindfold-ready"] = append(expected["blindfold-ready"], target)
	}
	compare(t, "jobs", keys(asked), keys(expected))
	for job, targets := range expected {
		compare(t, job, asked[job], targets)
	}
}

func keys[V any](m map[string]V) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	return names
}

func compare(t *testing.T, what string, left, right []string) {
	t.Helper()
	left, right = slices.Clone(left), slices.Clone(right)
	slices.Sort(left)
	slices.Sort(right)
	if !slices.Equal(left, right) {
		t.Errorf("%s: %v is not %v", what, left, right)
	}
}
