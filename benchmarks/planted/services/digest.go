// Computes digests, on all CPUs: digest -port PORT
//
// Environment: TABLE_SIZE and OUTPUT, which change nothing that a load shows.
package main

import (
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math"
	"math/rand"
	"net/http"
	"os"
	"time"
)

const rounds = 2000

func around(mean float64) float64 {
	const scatter = 0.3
	return mean * math.Exp(scatter*rand.NormFloat64()-scatter*scatter/2)
}

func digest(response http.ResponseWriter, _ *http.Request) {
	block := make([]byte, 1024)
	for n := int(around(rounds)); n > 0; n-- {
		sum := sha256.Sum256(block)
		copy(block, sum[:])
	}
	fmt.Fprintf(response, "%x\n", block[:8])
}

func knob(name, fallback string) string {
	if value, given := os.LookupEnv(name); given {
		return value
	}
	return fallback
}

func main() {
	port := flag.Int("port", 0, "where it listens")
	flag.Parse()
	rand.Seed(time.Now().UnixNano())
	knobs := map[string]string{"table_size": knob("TABLE_SIZE", "256"), "output": knob("OUTPUT", "hex")}
	http.HandleFunc("/", digest)
	http.HandleFunc("/config", func(response http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(response).Encode(knobs)
	})
	log.Printf("listening on %d", *port)
	log.Fatal(http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", *port), nil))
}
