package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFlags(t *testing.T) {
	required := []string{"--datadir", "d", "--genesis", "g", "--jwt-secret", "j"}
	config, opts, err := parseFlags(append(required, "--http-api", "eth, debug", "--exit-with-stdin"))
	if err != nil || !opts.exitWithStdin || len(config.httpModules) != 2 || config.httpModules[1] != "debug" {
		t.Fatalf("%+v %+v %v", config, opts, err)
	}
	for name, args := range map[string][]string{
		"missing":          {"--datadir", "d"},
		"unknown flag":     append(required, "--mine"),
		"argument":         append(required, "start"),
		"port":             append(required, "--http-port", "70000"),
		"engine in public": append(required, "--http-api", "eth,engine"),
		"admin in public":  append(required, "--http-api", "admin"),
	} {
		if _, _, err := parseFlags(args); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestCheck(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	if err := run([]string{"--check", server.URL}, nil, io.Discard); err != nil {
		t.Error(err)
	}
	status = http.StatusForbidden
	if err := run([]string{"--check", server.URL}, nil, io.Discard); err == nil {
		t.Error("a node that refuses is well")
	}
	server.Close()
	if err := run([]string{"--check", server.URL}, nil, io.Discard); err == nil {
		t.Error("nobody is well")
	}
}

func TestRefusedFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	genesis := string(testGenesis(t, nil))
	good := write("good.json", genesis)
	secret := write("jwt.hex", strings.Repeat("01", 32))
	for name, files := range map[string][2]string{
		"no genesis":          {filepath.Join(dir, "none"), secret},
		"garbage genesis":     {write("garbage", "{"), secret},
		"no config":           {write("empty", `{"gasLimit":"0x1","difficulty":"0x0","alloc":{}}`), secret},
		"other rules":         {write("rules", strings.Replace(genesis, `"jovianTime":0`, `"jovianTime":99`, 1)), secret},
		"chain id zero":       {write("zero", strings.Replace(genesis, `"chainId":77001`, `"chainId":0`, 1)), secret},
		"no secret":           {good, filepath.Join(dir, "none")},
		"secret is no hex":    {good, write("bad.hex", "zz")},
		"secret is too short": {good, write("short.hex", "0102")},
	} {
		config := nodeConfig{dataDir: filepath.Join(dir, "data"), genesisPath: files[0], jwtSecretPath: files[1], httpAddr: "127.0.0.1", authAddr: "127.0.0.1", httpModules: []string{"eth"}}
		if n, err := startNode(config); err == nil {
			_ = n.stack.Close()
			t.Errorf("%s: started", name)
		}
	}
}

// The node prints its line, serves, and ends when its parent's pipe closes.
func TestRunUntilStdinCloses(t *testing.T) {
	dir := t.TempDir()
	secret, genesis := filepath.Join(dir, "jwt.hex"), filepath.Join(dir, "genesis.json")
	if err := os.WriteFile(genesis, testGenesis(t, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(secret, []byte(strings.Repeat("01", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	stdin, parent := io.Pipe()
	reader, stdout := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run([]string{
			"--datadir", filepath.Join(dir, "chain"), "--genesis", genesis, "--jwt-secret", secret,
			"--http-port", "0", "--auth-port", "0", "--verbosity", "0", "--exit-with-stdin",
		}, stdin, stdout)
		_ = stdout.Close()
	}()
	var ready readyLine
	if err := json.NewDecoder(reader).Decode(&ready); err != nil {
		t.Fatal(err)
	}
	if ready.HTTP == ready.Engine || !strings.HasPrefix(ready.HTTP, "http://127.0.0.1:") || bytes.Equal(ready.GenesisHash[:], make([]byte, 32)) {
		t.Errorf("%+v", ready)
	}
	if err := parent.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}
