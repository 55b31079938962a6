package waybill;

import java.util.*;
import java.util.regex.Pattern;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.Tokenizer;
import org.apache.lucene.analysis.email.UAX29URLEmailTokenizer;
import org.apache.lucene.analysis.miscellaneous.RemoveDuplicatesTokenFilter;
import org.apache.lucene.analysis.pattern.PatternCaptureGroupTokenFilter;
import org.elasticsearch.Build;
import org.elasticsearch.client.internal.node.NodeClient;
import org.elasticsearch.cluster.node.DiscoveryNodes;
import org.elasticsearch.cluster.service.ClusterService;
import org.elasticsearch.features.NodeFeature;
import org.elasticsearch.index.analysis.*;
import org.elasticsearch.index.mapper.*;
import org.elasticsearch.indices.analysis.AnalysisModule.AnalysisProvider;
import org.elasticsearch.ingest.*;
import org.elasticsearch.plugins.*;
import org.elasticsearch.rest.*;
import org.elasticsearch.xcontent.XContentBuilder;

/**
 * Stands in for what the sink and its templates need of modules that are not published (rest-root, analysis-common,
 * ingest-common, mapper-extras, constant-keyword, wildcard). Everything else is Elasticsearch's own code.
 */
public class StandIns extends Plugin implements ActionPlugin, AnalysisPlugin, IngestPlugin, MapperPlugin {
    private ClusterService clusterService;

    @Override public Collection<?> createComponents(PluginServices s) { clusterService = s.clusterService(); return List.of(); }

    // --- rest-root: GET /
    @Override public Collection<RestHandler> getRestHandlers(RestHandlersServices s,
            java.util.function.Supplier<DiscoveryNodes> n, java.util.function.Predicate<NodeFeature> f) {
        return List.of(new BaseRestHandler() {
            @Override public String getName() { return "main_action"; }
            @Override public List<Route> routes() {
                return List.of(new Route(RestRequest.Method.GET, "/"), new Route(RestRequest.Method.HEAD, "/"));
            }
            @Override protected RestChannelConsumer prepareRequest(RestRequest r, NodeClient c) {
                return ch -> {
                    Build b = Build.current();
                    XContentBuilder x = ch.newBuilder().prettyPrint().startObject();
                    x.field("name", clusterService.getNodeName()).field("cluster_name", clusterService.getClusterName().value());
                    x.field("cluster_uuid", clusterService.state().metadata().clusterUUID());
                    x.startObject("version").field("number", b.qualifiedVersion()).field("build_flavor", b.flavor())
                        .field("build_type", b.type().displayName()).field("build_hash", b.hash()).field("build_date", b.date())
                        .field("build_snapshot", b.isSnapshot())
                        .field("minimum_wire_compatibility_version", b.minWireCompatVersion())
                        .field("minimum_index_compatibility_version", b.minIndexCompatVersion()).endObject();
                    x.field("tagline", "You Know, for Search").endObject();
                    ch.sendResponse(new RestResponse(RestStatus.OK, x));
                };
            }
        });
    }

    // --- analysis-common: what the mapping of the security index needs
    @Override public Map<String, AnalysisProvider<TokenFilterFactory>> getTokenFilters() {
        return Map.of("pattern_capture", AnalysisPlugin.requiresAnalysisSettings((i, e, name, set) -> {
            Pattern[] ps = set.getAsList("patterns").stream().map(Pattern::compile).toArray(Pattern[]::new);
            boolean keep = set.getAsBoolean("preserve_original", true);
            return new AbstractTokenFilterFactory(name) {
                @Override public TokenStream create(TokenStream t) { return new PatternCaptureGroupTokenFilter(t, keep, ps); }
            };
        }), "unique", (i, e, name, set) -> new AbstractTokenFilterFactory(name) {
            @Override public TokenStream create(TokenStream t) { return new RemoveDuplicatesTokenFilter(t); }
        });
    }
    @Override public Map<String, AnalysisProvider<TokenizerFactory>> getTokenizers() {
        return Map.of("uax_url_email", (i, e, name, set) -> new AbstractTokenizerFactory(name) {
            @Override public Tokenizer create() { return new UAX29URLEmailTokenizer(); }
        });
    }
    @Override public List<PreConfiguredTokenizer> getPreConfiguredTokenizers() {
        return List.of(PreConfiguredTokenizer.singleton("uax_url_email", UAX29URLEmailTokenizer::new));
    }

    // --- ingest-common: set, with value or copy_from; {{{_ingest.timestamp}}} is the only template
    @Override public Map<String, Processor.Factory> getProcessors(Processor.Parameters p) {
        return Map.of("set", (fs, tag, desc, conf, project) -> {
            String field = ConfigurationUtils.readStringProperty("set", tag, conf, "field");
            String from = ConfigurationUtils.readOptionalStringProperty("set", tag, conf, "copy_from");
            Object value = conf.remove("value");
            boolean override = ConfigurationUtils.readBooleanProperty("set", tag, conf, "override", true);
            ConfigurationUtils.readBooleanProperty("set", tag, conf, "ignore_empty_value", false);
            if (from == null && value == null) throw ConfigurationUtils.newConfigurationException("set", tag, "value", "required property is missing");
            return new AbstractProcessor(tag, desc) {
                @Override public String getType() { return "set"; }
                @Override public IngestDocument execute(IngestDocument d) {
                    if (!override && d.hasField(field)) return d;
                    Object v = from != null ? d.getFieldValue(from, Object.class) : value;
                    if (v instanceof String t && t.matches("\\{\\{\\{? *_ingest\\.timestamp *\\}?\\}\\}"))
                        v = String.valueOf(d.getIngestMetadata().get("timestamp"));
                    d.setFieldValue(field, v);
                    return d;
                }
            };
        });
    }

    // --- mapper-extras, constant-keyword, wildcard: nearest types of the server
    private static Mapper.TypeParser like(Mapper.TypeParser p, String... without) {
        return (name, node, ctx) -> { for (String w : without) node.remove(w); return p.parse(name, node, ctx); };
    }
    @Override public Map<String, Mapper.TypeParser> getMappers() {
        return Map.of("match_only_text", TextFieldMapper.PARSER, "wildcard", KeywordFieldMapper.PARSER,
            "constant_keyword", like(KeywordFieldMapper.PARSER, "value"),
            "scaled_float", like(NumberFieldMapper.NumberType.DOUBLE.parser(), "scaling_factor"));
    }
}
