// Command blindfold-node is Blindfold's execution client: op-geth's packages without a network, with one
// method more, engine_filterV1, which says which transactions of an ordered list a block can hold.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/ethereum/go-ethereum/log"
)

func main() {
	err := run(os.Args[1:], os.Stdin, os.Stdout)
	switch {
	case err == nil:
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "blindfold-node:", err)
		os.Exit(1)
	}
}

// run starts the node, prints one line of JSON when it serves, and returns after a clean shutdown.
func run(args []string, stdin io.Reader, stdout io.Writer) error {
	config, options, err := parseFlags(args)
	if err != nil {
		return err
	}
	if options.check != "" {
		return check(options.check)
	}
	level := slog.LevelError
	if options.verbosity > 0 {
		level = log.FromLegacyLevel(options.verbosity)
	}
	log.SetDefault(log.NewLogger(log.NewTerminalHandlerWithLevel(os.Stderr, level, false)))

	running, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if options.exitWithStdin {
		// A parent that dies, however it dies, closes this pipe: the node never outlives it.
		go func() {
			_, _ = io.Copy(io.Discard, stdin)
			stop()
		}()
	}
	n, err := startNode(config)
	if err != nil {
		return err
	}
	ready := readyLine{
		HTTP:        n.stack.HTTPEndpoint(),
		Engine:      n.stack.HTTPAuthEndpoint(),
		ChainID:     n.backend.BlockChain().Config().ChainID.Uint64(),
		GenesisHash: n.backend.BlockChain().Genesis().Hash(),
	}
	if err := json.NewEncoder(stdout).Encode(ready); err != nil {
		return errors.Join(err, n.stack.Close())
	}
	<-running.Done()
	return n.stack.Close()
}

// checkTimeout bounds one look at a running node.
const checkTimeout = 3 * time.Second

// check asks a running node's port for public reads whether it serves, for supervisors that can start a program and
// no more. geth answers an empty GET with 200.
func check(url string) error {
	client := http.Client{Timeout: checkTimeout}
	answer, err := client.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, answer.Status)
	}
	return nil
}

type options struct {
	verbosity     int
	exitWithStdin bool
	check         string
}

func parseFlags(args []string) (nodeConfig, options, error) {
	var (
		config nodeConfig
		opts   options
		apis   string
		vhosts string
		flags  = flag.NewFlagSet("blindfold-node", flag.ContinueOnError)
	)
	flags.StringVar(&config.dataDir, "datadir", "", "folder of the chain data (required)")
	flags.StringVar(&config.genesisPath, "genesis", "", "genesis file (required)")
	flags.StringVar(&config.jwtSecretPath, "jwt-secret", "", "file with the Engine API's secret, 64 hex digits (required)")
	flags.StringVar(&config.httpAddr, "http-addr", "127.0.0.1", "address for public reads")
	flags.IntVar(&config.httpPort, "http-port", 8645, "port for public reads, 0 for a free one")
	flags.StringVar(&apis, "http-api", "eth,net,web3", "namespaces served to the public")
	flags.StringVar(&vhosts, "http-vhosts", "localhost", "host names accepted in requests for public reads")
	flags.StringVar(&config.authAddr, "auth-addr", "127.0.0.1", "address of the Engine API")
	flags.IntVar(&config.authPort, "auth-port", 8651, "port of the Engine API, 0 for a free one")
	flags.IntVar(&opts.verbosity, "verbosity", 3, "log level, 0 (errors) to 5")
	flags.StringVar(&opts.check, "check", "", "start nothing: exit status 0 if a node serves public reads at this URL")
	flags.BoolVar(&opts.exitWithStdin, "exit-with-stdin", false, "stop when standard input closes")
	if err := flags.Parse(args); err != nil {
		return config, opts, err
	}
	if opts.check != "" {
		return config, opts, nil
	}
	config.httpModules = splitList(apis)
	config.httpVirtualHosts = splitList(vhosts)
	for name, value := range map[string]string{
		"datadir": config.dataDir, "genesis": config.genesisPath, "jwt-secret": config.jwtSecretPath,
	} {
		if value == "" {
			return config, opts, fmt.Errorf("the flag --%s is required", name)
		}
	}
	for name, port := range map[string]int{"http-port": config.httpPort, "auth-port": config.authPort} {
		if port < 0 || port > 65535 {
			return config, opts, fmt.Errorf("--%s %d is no port", name, port)
		}
	}
	if flags.NArg() > 0 {
		return config, opts, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	// The public port must never carry a method that moves the chain.
	for _, module := range config.httpModules {
		switch module {
		case "eth", "net", "web3", "debug", "txpool":
		default:
			return config, opts, fmt.Errorf("the namespace %q cannot be served to the public", module)
		}
	}
	return config, opts, nil
}

func splitList(text string) []string {
	var list []string
	for _, item := range strings.Split(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	return list
}
