package containers

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"go.yaml.in/yaml/v3"
)

const chart = docker + "/chart"

type container struct {
	Image    string
	User     int
	Settings *struct{ Key, Path string }
	Args     []string
	Ports    map[string]int
	Networks []string
	Files    map[string]string
	Memory   string
	CPUs     float64 `yaml:"cpus"`
	Disk     string
}

type values struct {
	Image struct {
		Registry, Tag string
		PullPolicy    string `yaml:"pullPolicy"`
	}
	Objects struct {
		Chain, Settings, Secrets string
		ConfidentialKeys         string `yaml:"confidentialKeys"`
	}
	Initialize string
	Begin      string
	Storage    struct {
		ClassName string `yaml:"className"`
	}
	GracePeriodSeconds int `yaml:"gracePeriodSeconds"`
	Containers         map[string]container
}

// chartValues gives the values twice: typed, where a key that no template could use is refused, and as templates see them.
func chartValues(t *testing.T) (typed values, untyped map[string]any) {
	t.Helper()
	text := read(t, chart+"/values.yaml")
	parse(t, "values.yaml", text, &untyped)
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&typed); err != nil {
		t.Fatal(err)
	}
	return typed, untyped
}

// render does what Helm does with these templates, which use nothing but Go's own functions and Helm's dict and set.
func render(t *testing.T, change func(map[string]any)) map[string]string {
	t.Helper()
	_, untyped := chartValues(t)
	if change != nil {
		change(untyped)
	}
	paths, err := filepath.Glob(chart + "/templates/*")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	functions := template.FuncMap{
		"dict": func() map[string]any { return map[string]any{} },
		"set":  func(into map[string]any, key string, value any) map[string]any { into[key] = value; return into },
	}
	rendered := map[string]string{}
	for _, path := range paths {
		parsed, err := template.New(path).Funcs(functions).Option("missingkey=zero").Parse(read(t, path))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := parsed.Execute(&out, map[string]any{"Values": untyped}); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); strings.Contains(text, "<no value>") || strings.Contains(text, "<nil>") {
			t.Fatalf("%s uses a value that is not there:\n%s", path, text)
		}
		rendered[filepath.Base(path)] = out.String()
	}
	return rendered
}

type object struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct {
		Name   string
		Labels map[string]string
	}
	Spec yaml.Node
}

func objects(t *testing.T, rendered map[string]string) (all []object) {
	t.Helper()
	for name, text := range rendered {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		decoder := yaml.NewDecoder(strings.NewReader(text))
		for {
			var one object
			err := decoder.Decode(&one)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, text)
			}
			if one.Kind != "" {
				all = append(all, one)
			}
		}
	}
	return all
}

// Every value that a template names exists, and every value is named.
func TestValuesAndTemplatesFitTogether(t *testing.T) {
	_, untyped := chartValues(t)
	text := ""
	paths, _ := filepath.Glob(chart + "/templates/*")
	for _, path := range paths {
		text += read(t, path)
	}
	named := map[string]bool{}
	for _, match := range regexp.MustCompile(`\.Values((?:\.[a-zA-Z]+)+)`).FindAllStringSubmatch(text, -1) {
		named[match[1][1:]] = true
	}
	var there []string
	var walk func(prefix string, value any)
	walk = func(prefix string, value any) {
		fields, ok := value.(map[string]any)
		if !ok || prefix == "containers" {
			there = append(there, prefix)
			return
		}
		for key, field := range fields {
			walk(strings.TrimPrefix(prefix+"."+key, "."), field)
		}
	}
	walk("", untyped)
	compare(t, "values", there, keys(named))

	inContainers := map[string]bool{}
	for _, match := range regexp.MustCompile(`\$container\.([a-zA-Z]+)`).FindAllStringSubmatch(text, -1) {
		inContainers[match[1]] = true
	}
	used := map[string]bool{}
	for _, one := range untyped["containers"].(map[string]any) {
		for key := range one.(map[string]any) {
			used[key] = true
		}
	}
	compare(t, "values of containers", keys(used), keys(inContainers))
}

func TestTheChartRenders(t *testing.T) {
	typed, _ := chartValues(t)
	count := map[string]int{}
	for _, one := range objects(t, render(t, nil)) {
		count[one.Kind]++
		if one.APIVersion == "" || one.Metadata.Name == "" || one.Metadata.Labels["app.kubernetes.io/part-of"] != "blindfold" {
			t.Errorf("%+v", one.Metadata)
		}
		if one.Kind == "StatefulSet" {
			var spec struct {
				Replicas int
				Template struct {
					Spec struct {
						Containers []struct {
							Image           string
							SecurityContext struct {
								ReadOnlyRootFilesystem   bool `yaml:"readOnlyRootFilesystem"`
								AllowPrivilegeEscalation bool `yaml:"allowPrivilegeEscalation"`
							} `yaml:"securityContext"`
							VolumeMounts []struct{ Name string } `yaml:"volumeMounts"`
						}
						InitContainers []struct{ Name string } `yaml:"initContainers"`
						Volumes        []struct{ Name string }
					}
				}
				VolumeClaimTemplates []struct{ Metadata struct{ Name string } } `yaml:"volumeClaimTemplates"`
			}
			if err := one.Spec.Decode(&spec); err != nil {
				t.Fatal(err)
			}
			pod := spec.Template.Spec
			if spec.Replicas != 1 || len(pod.Containers) != 1 || len(pod.InitContainers) != 0 {
				t.Errorf("%s: %+v", one.Metadata.Name, spec)
			}
			first := pod.Containers[0]
			if !first.SecurityContext.ReadOnlyRootFilesystem || first.SecurityContext.AllowPrivilegeEscalation {
				t.Errorf("%s is not confined", one.Metadata.Name)
			}
			mounted, volumes := map[string]bool{}, map[string]bool{}
			for _, mount := range first.VolumeMounts {
				mounted[mount.Name] = true
			}
			for _, volume := range pod.Volumes {
				volumes[volume.Name] = true
			}
			for _, claim := range spec.VolumeClaimTemplates {
				volumes[claim.Metadata.Name] = true
			}
			compare(t, one.Metadata.Name+": volumes", keys(mounted), keys(volumes))
		}
	}
	networks := map[string]bool{}
	for _, one := range typed.Containers {
		for _, network := range one.Networks {
			networks[network] = true
		}
	}
	if n := len(typed.Containers); count["StatefulSet"] != n || count["Service"] != n || count["NetworkPolicy"] != len(networks) {
		t.Errorf("%v", count)
	}
	initialized := render(t, func(v map[string]any) { v["initialize"] = "postgres-1" })["containers.yaml"]
	if strings.Count(initialized, "args: [initialize]") != 1 {
		t.Error("one database is made, no more and no less")
	}
	begun := render(t, func(v map[string]any) { v["begin"] = "signer" })["containers.yaml"]
	if strings.Count(begun, `args: [begin, "1", --config, /etc/blindfold/signer.toml]`) != 1 {
		t.Error("one signer begins, no more and no less")
	}
}

// Whoever changes the one changes the other.
func TestTheChartSaysWhatComposeSays(t *testing.T) {
	typed, _ := chartValues(t)
	compose := compositions(t)["compose.yaml"]
	// What watches is the cluster's own.
	watching := []string{"prometheus", "blackbox-exporter", "alertmanager", "grafana"}
	var expected []string
	for name := range compose.Services {
		if !slices.Contains(watching, name) {
			expected = append(expected, name)
		}
	}
	compare(t, "containers", keys(typed.Containers), expected)
	file := regexp.MustCompile(`/secrets/(.*)$`)
	for name, ours := range typed.Containers {
		theirs := compose.Services[name]
		if ours.Image != imageOf(theirs) {
			t.Errorf("%s runs %s and %s", name, ours.Image, theirs.Image)
		}
		compare(t, name+": networks", ours.Networks, theirs.Networks)
		compare(t, name+": arguments", ours.Args, theirs.Command)
		if unit := strings.NewReplacer("g", "Gi", "m", "Mi").Replace(theirs.MemLimit); ours.Memory != unit || ours.CPUs != theirs.CPUs {
			t.Errorf("%s: %s and %v, %s and %v", name, ours.Memory, ours.CPUs, theirs.MemLimit, theirs.CPUs)
		}
		if theirs.StopGracePeriod != fmt.Sprintf("%ds", typed.GracePeriodSeconds) {
			t.Errorf("%s ends within %s", name, theirs.StopGracePeriod)
		}
		var left, right []string
		for path, key := range ours.Files {
			left = append(left, path+"="+key)
		}
		for _, secret := range theirs.Secrets {
			right = append(right, secret.Target+"="+file.FindStringSubmatch(compose.Secrets[secret.Source].File)[1])
		}
		compare(t, name+": secrets", left, right)
		left, right = nil, nil
		if ours.Settings != nil {
			left = []string{"settings/" + ours.Settings.Key + ":/etc/blindfold/" + ours.Settings.Path}
		}
		for _, volume := range theirs.Volumes {
			if settings, ok := strings.CutPrefix(volume, "${BLINDFOLD_DEPLOYMENT:?}/settings/"); ok {
				right = append(right, "settings/"+strings.TrimSuffix(settings, ":ro"))
			}
		}
		compare(t, name+": settings", left, right)
		if keeps := slices.Contains(theirs.Volumes, name+":/data"); keeps != (ours.Disk != "") {
			t.Errorf("%s: disk %q, and volumes %v", name, ours.Disk, theirs.Volumes)
		}
		dockerfile := read(t, filepath.Join(docker, ours.Image+".Dockerfile"))
		left = nil
		for _, port := range ours.Ports {
			left = append(left, fmt.Sprint(port))
		}
		compare(t, name+": ports", left, strings.Fields(directive(dockerfile, "EXPOSE")))
		if user := fmt.Sprintf("%d:%d", ours.User, ours.User); directive(dockerfile, "USER") != user {
			t.Errorf("%s runs as %s and %s", name, user, directive(dockerfile, "USER"))
		}
	}
}
